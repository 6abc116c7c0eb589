"""The shell scripts at the other end of a lock and of a place in its queue: POSIX sh, which bash bounds in time.

Links have the target PID:START:BOOT:SINCE HOLDER. START is field 22 of /proc/PID/stat, so that a reused PID is nobody.
"""

from typing import Final

# $1: what tells nodes apart that share a network namespace; $2: who holds it, since when; $3: seconds of silence;
# $4 of LOCK: "queue", to stand behind those who wait; else they are passed over.
#
# The script makes its link in the first of /tmp, /var/tmp and /dev/shm where it can have a folder of its own, and looks
# for other links in all three: for another user the first one may be another.
#
# `look` sets `links` to words UID:PATH, one for each lock of this node and each ticket in its queue; UID is the owner
# of the folder. Any user can make any number of folders and links, so `look` takes at most 20 folders and 50 tickets of
# each user; "many:PATH" stands for the tickets left out. The names that `find` prints hold no blank and no newline.
_COMMON: Final = r"""
LC_ALL=C; export LC_ALL; trap '' HUP
distinction=$1; said=$2; silence=$3; queue=$4
nl='
'
started() {
  # Its name is in it, in parentheses, and may hold newlines.
  start=; read -r s 2>/dev/null <"/proc/$1/stat" || return 1
  case $s in *')'*) ;; *) s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1 ;; esac
  set -- ${s##*) }; start=${20}
}
# alive TARGET UID: the process that made the link still runs, as the user who owns the folder of the link.
alive() {
  p=${1%%:*}; r=${1#*:}; st=${r%%:*}; r=${r#*:}
  case $p in '' | *[!0-9]* | ??????????*) return 1 ;; esac
  [ "$p" -gt 0 ] && [ "${r%%:*}" = "$boot" ] || return 1
  if started "$p"; then [ "$start" = "$st" ] && runs_as "$2" "$p"; return; fi
  # Where /proc shows processes of others, what it does not show is gone.
  [ ! -d /proc/1 ] || [ -d "/proc/$p" ] || return 1
  kill -0 "$p" 2>/dev/null && return 0
  case $(kill -0 "$p" 2>&1) in *ermitted*) return 0 ;; esac
  return 1
}
runs_as() {
  while read -r key _ euid _; do
    [ "$key" != Uid: ] || { [ "$euid" = "$1" ]; return; }
  done 2>/dev/null <"/proc/$2/status"
}
# told KIND TARGET PATH: print what a link holds, as one line.
told() { r=${2#*:*:*:}; printf '%s %s %s %s\n' "$1" "${2%%:*}" "${3%/*}" "${r%%"$nl"*}"; }
tell() { told busy "$1" "$2"; exit 1; }
drop() { [ -L "$1" ] && [ "$(readlink "$1" 2>/dev/null)" = "$me" ] && rm -f "$1"; }
number() { number=${1##*.}; case $number in '' | 0* | *[!0-9]* | ??????????*) return 1 ;; esac; }
look() {
  folders=$(find -H $bases -maxdepth 1 -name 'rigctl-locks-*' ! -name '*[!A-Za-z0-9-]*' -type d \
    -exec ls -lnd {} + 2>/dev/null | awk '++count[$3] <= 20 { print $3, $NF }')
  case $nl$folders$nl in
    *" $own$nl"*) ;;
    *) echo "failed the first 20 folders of user $uid, by find, ls and awk, do not contain $own"; exit 1 ;;
  esac
  set --; for word in $folders; do case $word in /*) set -- "$@" "$word" ;; esac; done
  links=$({
    printf '%s\n' "$folders"
    find "$@" -maxdepth 1 \( -name "$name" -o -name "$name.queue.*" ! -name "$name.queue.*[!0-9]*" \) -type l \
      2>/dev/null
  } | awk '
    NF == 2 { owner[$2] = $1; next }
    { folder = $0; sub("/[^/]*$", "", folder); user = owner[folder] }
    !/[.]queue[.]/ || ++count[user] <= 50 { print user ":" $0; next }
    count[user] == 51 { print "many:" $0 }' | sort)
}
# judge NUMBER: set `holder` and `place` to the target and path of another run's lock, `ahead` to the count of living
# tickets before NUMBER, `next` and `front` to target and path of the first of them. Two users may draw the same number:
# then the order of the list decides.
judge() {
  holder=; ahead=0; next=; least=; passed=
  for entry in $links; do
    user=${entry%%:*}; path=${entry#*:}
    [ "$user" != many ] || continue
    case $path in
      *.queue.*)
        number "$path" && [ "$number" -le "$1" ] || continue
        [ "$number" -eq "$1" ] && [ "$passed" ] && continue ;;
      *) number=; [ -z "$holder" ] || continue ;;
    esac
    target=$(readlink "$path") || continue
    if [ "$target" = "$me" ]; then passed=$number; continue; fi
    alive "$target" "$user" || continue
    if [ -z "$number" ]; then holder=$target; place=$path; continue; fi
    ahead=$((ahead + 1))
    [ "$least" ] && [ "$number" -ge "$least" ] || { least=$number; next=$target; front=$path; }
  done
}
net=$(readlink /proc/self/ns/net 2>/dev/null); net=${net#*:[}; net=${net%]}
# bash reads such a file whole; a shell that reads it byte by byte gets one.
boot=; read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id
case $boot in ????????-*) boot=${boot%%-*} ;; *) boot=$(cut -c1-8 /proc/sys/kernel/random/boot_id 2>/dev/null) ;; esac
if [ "$BASH_VERSION" ]; then uid=$EUID; else uid=$(id -u); fi
# has FOLDER: the folder is ours, and we can write to it.
has() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && chmod 755 "$1" 2>/dev/null && [ -w "$1" ]; }
bases=; own=; unusable=
for base in /tmp /var/tmp /dev/shm; do
  [ -d "$base" ] || continue
  bases="$bases $base"
  [ -z "$own" ] || continue
  # Another user may have made a folder of that name, but not of one that mktemp draws.
  mkdir -m 755 "$base/rigctl-locks-$uid" 2>/dev/null
  for folder in "$base/rigctl-locks-$uid" "$base/rigctl-locks-$uid-"*; do
    has "$folder" && { own=$folder; break; }
  done
  [ "$own" ] || { own=$(mktemp -d "$base/rigctl-locks-$uid-XXXXXX" 2>/dev/null) && has "$own" || own=; }
  [ "$own" ] || unusable="$unusable $base"
done
[ "$own" ] || { echo "failed no folder for a lock can be made in$unusable: each is read-only or full"; exit 1; }
name=${net:-0}$distinction
started $$; me=$$:$start:$boot:$said
if [ "$BASH_VERSION" ] || (echo | read -r -t 1 _) 2>/dev/null; then limit="-t $silence"; else limit=; fi
"""

# `taking` is between one user's runs.
LOCK: Final = (
    _COMMON
    + r"""
held=$own/$name; taking=$held.taking
trap 'drop "$held"; drop "$taking"' EXIT; trap 'exit 0' TERM INT
if ! ln -sn "$me" "$held" 2>/dev/null; then
  # Of those who find a dead holder, one at a time looks again and takes over.
  if ! ln -sn "$me" "$taking" 2>/dev/null; then
    other=$(readlink "$taking") && alive "$other" "$uid" && tell "$other" "$taking"
    rm -f "$taking"; ln -sn "$me" "$taking" 2>/dev/null || tell "$(readlink "$taking")" "$taking"
  fi
  if holder=$(readlink "$held") && alive "$holder" "$uid"; then rm -f "$taking"; tell "$holder" "$held"; fi
  rm -f "$held"; why=$(ln -sn "$me" "$held" 2>&1); took=$?; rm -f "$taking"
  if [ $took != 0 ]; then
    holder=$(readlink "$held") && tell "$holder" "$held"
    printf 'failed %s\n' "$why"; exit 1
  fi
fi
look
[ -z "$unusable" ] || echo "note the lock is in $own: no folder for it can be made in$unusable"
for entry in $links; do
  case $entry in many:*) path=${entry#*:}; echo "note ${path%/*} holds more than 50 tickets: only 50 count" ;; esac
done
if [ "$queue" ]; then judge 999999999; else judge 0; fi
if [ "$holder" ]; then rm -f "$held"; tell "$holder" "$place"; fi
if [ "$ahead" -gt 0 ]; then rm -f "$held"; told queued "$next" "$front"; exit 1; fi
echo held
while read -r $limit _; do :; done
exit 0
"""
)

# Says which host this is; at the first line that is not empty, takes a ticket; answers that line and each further one
# with how things stand: LINE turn, or LINE busy|queued AHEAD PID FOLDER SINCE HOLDER. The ticket is a link, as a lock.
TICKET: Final = (
    _COMMON
    + r"""
printf 'at %s %s %s\n' "$boot" "$(uname -n)" "$name"
while read -r $limit line && [ -z "$line" ]; do :; done
[ "$line" ] || exit 0
last=0
look
for entry in $links; do
  user=${entry%%:*}; path=${entry#*:}
  case $path in *.queue.*) number "$path" || continue ;; *) continue ;; esac
  if target=$(readlink "$path") && alive "$target" "$user"; then
    [ "$number" -gt "$last" ] && last=$number
  elif [ "${path%/*}" = "$own" ]; then
    rm -f "$path"
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
  look
  judge "$turn"
  if [ "$holder" ]; then told "$line busy $ahead" "$holder" "$place"
  elif [ "$ahead" -gt 0 ]; then told "$line queued $ahead" "$next" "$front"
  else printf '%s turn\n' "$line"; fi
  read -r $limit line || break
done
exit 0
"""
)
