"""The shell scripts at the other end of a lock and of a place in its queue: POSIX sh, which bash bounds in time.

Links have the target PID:START:BOOT:SINCE HOLDER. START is field 22 of /proc/PID/stat, so that a reused PID is nobody.
"""

from typing import Final

# $1: what tells nodes apart that share a network namespace; $2: who holds it, since when; $3: seconds of silence.
# Another user may have made a folder of our name: then the next name is tried.
# `ahead_of NUMBER LINK` counts the living tickets before that one, of all users; `next` is the first of them. Two users
# may draw one number: then the order of their folders decides, which the pattern gives.
_COMMON: Final = r"""
LC_ALL=C; export LC_ALL; trap '' HUP
started() {
  # Its name is in it, in parentheses, and may hold newlines.
  start=; read -r s 2>/dev/null <"/proc/$1/stat" || return 1
  case $s in *')'*) ;; *) s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1 ;; esac
  set -- ${s##*) }; start=${20}
}
alive() {
  p=${1%%:*}; r=${1#*:}; st=${r%%:*}; r=${r#*:}
  case $p in '' | *[!0-9]* | ??????????*) return 1 ;; esac
  [ "$p" -gt 0 ] && [ "${r%%:*}" = "$boot" ] || return 1
  if started "$p"; then [ "$start" = "$st" ]; return; fi
  kill -0 "$p" 2>/dev/null && return 0
  case $(kill -0 "$p" 2>&1) in *ermitted*) return 0 ;; esac
  return 1
}
said() { r=${2#*:*:*:}; printf '%s %s %s\n' "$1" "${2%%:*}" "$r"; }
tell() { said busy "$1"; exit 1; }
drop() { [ -L "$1" ] && [ "$(readlink "$1" 2>/dev/null)" = "$me" ] && rm -f "$1"; }
number() { number=${1##*.}; case $number in '' | 0* | *[!0-9]* | ??????????*) return 1 ;; esac; }
ahead_of() {
  ahead=0; next=; least=; passed=
  for ticket in "$base"/rigctl-locks*/"$name".queue.*; do
    if [ "$ticket" = "$2" ]; then passed=1; continue; fi
    number "$ticket" && [ "$number" -le "$1" ] || continue
    [ "$number" -eq "$1" ] && [ "$passed" ] && continue
    target=$(readlink "$ticket") && alive "$target" || continue
    ahead=$((ahead + 1))
    [ "$least" ] && [ "$number" -ge "$least" ] || { least=$number; next=$target; }
  done
}
net=$(readlink /proc/self/ns/net 2>/dev/null); net=${net#*:[}; net=${net%]}
# bash reads such a file whole; a shell that reads it byte by byte gets one.
boot=; read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id
case $boot in ????????-*) boot=${boot%%-*} ;; *) boot=$(cut -c1-8 /proc/sys/kernel/random/boot_id 2>/dev/null) ;; esac
if [ "$BASH_VERSION" ]; then uid=$EUID; else uid=$(id -u); fi
for base in /tmp /var/tmp /dev/shm none; do
  for own in "$base/rigctl-locks-$uid" "$base/rigctl-locks-$uid-2" "$base/rigctl-locks-$uid-3"; do
    [ -d "$own" ] || mkdir -m 755 "$own" 2>/dev/null
    [ -d "$own" ] && [ ! -L "$own" ] && [ -O "$own" ] && chmod 755 "$own" 2>/dev/null && [ -w "$own" ] && break 2
  done
done
[ "$base" != none ] || { echo 'failed no folder for a lock: /tmp, /var/tmp and /dev/shm are read-only'; exit 1; }
name=${net:-0}$1
started $$; me=$$:$start:$boot:$2
if [ "$BASH_VERSION" ] || (echo | read -r -t 1 _) 2>/dev/null; then limit="-t $3"; else limit=; fi
"""

# $4: "queue", to stand behind those who wait; else they are passed over. `taking` is between one user's runs.
LOCK: Final = (
    _COMMON
    + r"""
held=$own/$name; taking=$held.taking
trap 'drop "$held"; drop "$taking"' EXIT; trap 'exit 0' TERM INT
if ! ln -sn "$me" "$held" 2>/dev/null; then
  # Of those who find a dead holder, one at a time looks again and takes over.
  if ! ln -sn "$me" "$taking" 2>/dev/null; then
    other=$(readlink "$taking") && alive "$other" && tell "$other"
    rm -f "$taking"; ln -sn "$me" "$taking" 2>/dev/null || tell "$(readlink "$taking")"
  fi
  if holder=$(readlink "$held") && alive "$holder"; then rm -f "$taking"; tell "$holder"; fi
  rm -f "$held"; why=$(ln -sn "$me" "$held" 2>&1); took=$?; rm -f "$taking"
  if [ $took != 0 ]; then
    holder=$(readlink "$held") && tell "$holder"
    printf 'failed %s\n' "$why"; exit 1
  fi
fi
for other in "$base"/rigctl-locks*/"$name"; do
  if [ "$other" != "$held" ] && holder=$(readlink "$other") && alive "$holder"; then rm -f "$held"; tell "$holder"; fi
done
if [ "$4" = queue ] && ahead_of 999999999 "" && [ "$ahead" -gt 0 ]; then
  rm -f "$held"; said queued "$next"; exit 1
fi
echo held
while read -r $limit _; do :; done
exit 0
"""
)

# Says which host this is; at the first line that is not empty, takes a ticket; answers that line and each further one
# with how things stand: LINE turn, or LINE busy|queued AHEAD PID SINCE HOLDER. The ticket is a link, as a lock is.
TICKET: Final = (
    _COMMON
    + r"""
printf 'at %s %s %s\n' "$boot" "$(uname -n)" "$name"
while read -r $limit line && [ -z "$line" ]; do :; done
[ "$line" ] || exit 0
last=0
for ticket in "$base"/rigctl-locks*/"$name".queue.*; do
  number "$ticket" || continue
  if target=$(readlink "$ticket") && alive "$target"; then
    [ "$number" -gt "$last" ] && last=$number
  elif [ "${ticket%/*}" = "$own" ]; then
    rm -f "$ticket"
  fi
done
turn=$((last + 1)); mine=$own/$name.queue.$turn
trap 'drop "$mine"' EXIT; trap 'exit 0' TERM INT
until why=$(ln -sn "$me" "$mine" 2>&1); do
  turn=$((turn + 1)); mine=$own/$name.queue.$turn
  [ "$turn" -lt $((last + 1000)) ] || { printf 'failed %s\n' "$why"; exit 1; }
done
while :; do
  # Another run of this user that began at the same moment may have taken it for a dead one's, and removed it.
  [ "$(readlink "$mine")" = "$me" ] || ln -sn "$me" "$mine" 2>/dev/null
  ahead_of "$turn" "$mine"
  holder=
  for other in "$base"/rigctl-locks*/"$name"; do
    target=$(readlink "$other") && alive "$target" && { holder=$target; break; }
  done
  if [ "$holder" ]; then said "$line busy $ahead" "$holder"
  elif [ "$ahead" -gt 0 ]; then said "$line queued $ahead" "$next"
  else printf '%s turn\n' "$line"; fi
  read -r $limit line || break
done
exit 0
"""
)
