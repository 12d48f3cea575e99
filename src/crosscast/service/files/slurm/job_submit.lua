-- Slurm's controller runs this for each job (JobSubmitPlugins=lua). Whatever happens to the prediction service, the
-- job is accepted as it is: 0.1 s at most, once, and then nothing for ten seconds.
package.path = "@DIR@/crosscast/?.lua;" .. package.path
local fine, crosscast = pcall(require, "ask")

local function place(job, parts)
  local what = crosscast.said(job.comment)
  if not what then return end
  local partitions = {}
  local given = job.partition and "," .. job.partition .. ","
  for name, part in pairs(parts) do
    local may = crosscast.config.set_partition or (part.flag_default or 0) ~= 0
    if given then may = given:find("," .. name .. ",", 1, true) end
    if may then partitions[name] = part.max_time or 525600 end
  end
  local found, why = crosscast.decided(what, partitions)
  if not found then
    slurm.log_info("crosscast: %s; the job stays as it was", tostring(why))
    return
  end
  -- All of it has been checked: from here on nothing fails half-way.
  local comment, note = job.comment, found.note
  if type(job.admin_comment) == "string" and job.admin_comment ~= "" then note = job.admin_comment .. "; " .. note end
  job.admin_comment = note
  if found.caps and found.caps ~= "" and not comment:find("_cap_w=", 1, true) then
    job.comment = comment .. " " .. found.caps
  end
  if crosscast.config.set_partition and job.partition == nil and found.partition then
    job.partition = found.partition
    slurm.log_user("crosscast: partition %s, about %.3g s", found.partition, found.seconds)
  end
  if crosscast.config.set_time_limit and job.time_limit == slurm.NO_VAL and found.minutes then
    job.time_limit = found.minutes
    slurm.log_user("crosscast: a time limit of %d min", found.minutes)
  end
end

function slurm_job_submit(job, parts, uid)
  local good, why = fine, crosscast
  if fine then good, why = pcall(place, job, parts) end
  if not good then slurm.log_error("crosscast: %s", tostring(why)) end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, parts, uid) return slurm.SUCCESS end

return slurm.SUCCESS
