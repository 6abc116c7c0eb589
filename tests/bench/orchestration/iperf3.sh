#!/bin/bash
# The matrix by ssh and iperf3, as a script for a lab is usually written: servers as daemons, then for each test all
# clients side by side, then the servers' end. Usage: iperf3.sh SSH_CONFIG FOLDER SECONDS WINDOWS SIZES CONGESTIONS FLOWS PAIR…
# where a PAIR is SOURCE:DESTINATION:ADDRESS.
config=$1 folder=$2 seconds=$3 windows=$4 sizes=$5 congestions=$6 flows=$7
shift 7
for pair in "$@"; do
  IFS=: read -r source destination address <<<"$pair"
  ssh -F "$config" "$destination" 'iperf3 -s -D -I $HOME/iperf3.pid'
done
sleep 1
test=0
for window in $windows; do
  for size in $sizes; do
    for congestion in $congestions; do
      test=$((test + 1))
      for pair in "$@"; do
        IFS=: read -r source destination address <<<"$pair"
        ssh -F "$config" "$source" \
          iperf3 -c "$address" -t "$seconds" -w "$window" -M "$size" -C "$congestion" -P "$flows" -J \
          >"$folder/$test-$source.json" &
      done
      wait
    done
  done
done
for pair in "$@"; do
  IFS=: read -r source destination address <<<"$pair"
  ssh -F "$config" "$destination" 'kill $(tr -d "\0" <$HOME/iperf3.pid)'
done
