#!/bin/sh
# A test for tools/testing/selftests/drivers/net of Linux: measures the path of NETIF and prints KTAP.
# Exit codes are those of kselftest: 0 passed, 1 failed, 4 skipped. rigctl.yaml, beside it, says what is measured and expected.
cd "$(dirname "$0")" || exit 1
if [ -f net.config ]; then
	set -a
	. ./net.config
	set +a
fi
if ! command -v rigctl >/dev/null; then
	echo "SKIP: rigctl is not installed"
	exit 4
fi
if [ -z "$NETIF" ]; then
	echo "SKIP: NETIF is not set; rigctl measures devices, not netdevsim"
	exit 4
fi
run=$(rigctl run rigctl.yaml --quiet --no-report)
code=$?
[ -z "$run" ] || rigctl export "$run" --format ktap
[ "$code" = 0 ] || exit 1
