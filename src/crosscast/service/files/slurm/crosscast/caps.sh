# What prolog and epilog share. For each thing that is capped, a file STATE/JOB.THING holds what was in force before.
. "@DIR@/crosscast/caps.conf"
: "${POWERCAP:=/sys/class/powercap}" "${SMI:=nvidia-smi}" "${STATE:=/run/crosscast-caps}"
exec </dev/null 2>/dev/null >>"${LOG:-/dev/null}" || exec >/dev/null
exec 2>&1
[[ ${SLURM_JOB_ID-} =~ ^[0-9]+$ ]] || exit 0
umask 077
mkdir -p "$STATE" || exit 0
# Two jobs may begin at the same time.
exec 9>"$STATE/lock" && flock -w 10 9

is_number() { [[ $1 =~ ^[0-9]{1,15}$ ]]; }
smaller() { (($1 < $2)) && echo "$1" || echo "$2"; }
larger() { (($1 > $2)) && echo "$1" || echo "$2"; }
within() { smaller "$(larger "$1" "$2")" "$3"; }
smi() { timeout 5 "$SMI" "$@"; }
gpus() { for each in ${SLURM_JOB_GPUS//,/ }; do is_number "$each" && echo "$each"; done; }

whole_node() { # whether the job has all processors of each of its nodes
  local part
  for part in ${SLURM_JOB_CPUS_PER_NODE//,/ }; do
    [[ $part =~ ^([0-9]{1,6}) ]] && ((BASH_REMATCH[1] >= ${NODE_CPUS:-$(nproc --all)})) || return 1
  done
  [[ -n ${SLURM_JOB_CPUS_PER_NODE-} ]]
}

write_cap() { # THING VALUE
  case $1 in
    gpu*) smi -i "${1#gpu}" -pl "$2" ;;
    *) echo "$2" >"$POWERCAP/$1/constraint_0_power_limit_uw" ;;
  esac
}

set_cap() { # THING WHAT-IS-IN-FORCE VALUE: what cannot be given back is not set
  local kept own="$STATE/$SLURM_JOB_ID.$1"
  is_number "$3" || return
  for kept in "$STATE"/*."$1"; do
    # It could not be given back: what is in force is an earlier job's cap.
    [[ -e $kept ]] && mv "$kept" "$own"
  done
  [[ -e $own ]] || { echo "$2" >"$STATE/.new" && mv "$STATE/.new" "$own"; } || return
  echo "$(date -Is) job $SLURM_JOB_ID: $1 from $2 to $3"
  write_cap "$1" "$3"
}

give_back() { # THING: what was in force before any job changed it
  local kept value
  for kept in "$STATE"/*."$1"; do
    [[ -e $kept ]] || continue
    value=$(cat "$kept")
    # What fails is tried again before the next job.
    is_number "$value" && { write_cap "$1" "$value" || continue; }
    echo "$(date -Is) $1 given back: $value"
    rm -f "$kept"
  done
}
