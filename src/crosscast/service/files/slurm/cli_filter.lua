-- sbatch, srun and salloc run this as the user (CliFilterPlugins=lua), where job_submit.lua is not wanted: it
-- delays its own command only, but cannot annotate, and users may switch it off.
package.path = "@DIR@/crosscast/?.lua;" .. package.path
local fine, crosscast = pcall(require, "ask")

local function place(options)
  local what = crosscast.said(options["comment"])
  local config = crosscast.config
  if not what or not (config.set_partition or config.set_time_limit) then return end
  local own = options["partition"]
  local found = crosscast.decided(what, own and { [own] = 525600 })
  if not found or not found.partition then return end
  if config.set_partition and own == nil then
    options["partition"] = found.partition
    slurm.log_info("crosscast: partition %s, about %.3g s", found.partition, found.seconds)
  end
  -- Slurm 22.05 has a time that nobody set as this many days.
  local unset = options["time"] == nil or tostring(options["time"]):match("^2982616%-")
  if config.set_time_limit and unset and (own or config.set_partition) then
    options["time"] = tostring(math.floor(found.minutes))
  end
end

function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end

function slurm_cli_pre_submit(options, offset)
  -- Not the steps within a job.
  if fine and not os.getenv("SLURM_JOB_ID") then
    local good, why = pcall(place, options)
    if not good then slurm.log_debug("crosscast: %s", tostring(why)) end
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end

return slurm.SUCCESS
