#!/bin/bash
# Prolog=@DIR@/crosscast/prolog.sh with PrologFlags=Alloc: root runs it on each node before a job, and sets the power
# caps that the job's comment asks for (gpu_cap_w=200, cpu_cap_w=120). A cap is a wish: whatever goes wrong, it exits
# with 0, as another code would drain the node. Of the comment it takes digits and nothing else.
trap 'exit 0' EXIT
. "@DIR@/crosscast/caps.sh" || exit 0

wish() { # the digits after a word of the comment
  [[ " ${SLURM_JOB_COMMENT-} " =~ [[:space:]\;,]$1=([0-9]{1,5})[[:space:]\;,] ]] && echo $((10#${BASH_REMATCH[1]}))
}

# What a job left that ended without its epilog, as when the node failed, is given back first.
for gpu in $(gpus); do give_back "gpu$gpu"; done
whole_node && for zone in "$POWERCAP"/intel-rapl:[0-9]*; do give_back "${zone##*/}"; done

if want=$(wish gpu_cap_w); then
  for gpu in $(gpus); do
    IFS=', ' read -r now low high < <(smi -i "$gpu" --query-gpu=power.limit,power.min_limit,power.max_limit \
      --format=csv,noheader,nounits)
    now=${now%%.*} low=${low%%.*} high=${high%%.*}
    is_number "$now" && is_number "$low" && is_number "$high" || continue
    set_cap "gpu$gpu" "$now" "$(within "$want" "$(larger "$low" "$GPU_MIN_W")" "$(smaller "$high" "$GPU_MAX_W")")"
  done
fi
# A CPU's cap holds for a package: only where the job has the node for itself.
if want=$(wish cpu_cap_w) && whole_node; then
  for zone in "$POWERCAP"/intel-rapl:[0-9]*; do
    [[ ${zone##*/} =~ ^intel-rapl:[0-9]+$ ]] && now=$(cat "$zone/constraint_0_power_limit_uw") && is_number "$now" ||
      continue
    cap=$(within "$want" "$CPU_MIN_W" "$(smaller $((now / 1000000)) "$CPU_MAX_W")")
    set_cap "${zone##*/}" "$now" $((cap * 1000000))
  done
fi
