-- What the hooks of Crosscast do: yours to change. Slurm's controller reads it when it starts.
-- Users say what a job runs in its comment: sbatch --comment='crosscast:srad/small*1000000' job.sh
return {
  socket = "/run/crosscast/predict.sock",

  -- The partition of each device, as the model names devices (GET /v1/models of the service), as in
  -- devices = { gtx1080 = "gpu", ["i7-6700k"] = "cpu" },
  devices = {},

  -- Every job is annotated: AdminComment says the expected time and its interval. What else is done where the
  -- user has said nothing:
  set_partition = false, -- the one of the fastest device
  set_time_limit = false, -- factor times the upper limit of the time, not above the partition's limit
  factor = 1.5,

  -- A cap in watts for which /v1/choose chooses CPU and GPU caps of jobs whose sample runs the service has;
  -- they are written into the job's comment, where the prolog finds them. nil: users may write them themselves.
  power_cap_w = nil,
}
