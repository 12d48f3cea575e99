"""The engine of the simulator: one step per point in time, compiled when it is first needed."""
