#!/bin/bash
# Epilog=@DIR@/crosscast/epilog.sh: root runs it on each node after a job, cancelled or not, and gives back what the
# prolog found.
trap 'exit 0' EXIT
. "@DIR@/crosscast/caps.sh" || exit 0
for kept in "$STATE/$SLURM_JOB_ID".*; do
  [[ -e $kept ]] && give_back "${kept##*/"$SLURM_JOB_ID".}"
done
