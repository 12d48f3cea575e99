"""Times by a roofline: the larger of memory and instructions, and a launch; a factor of three either way."""

import numpy as np

import crosscast

LAUNCH_S = 5e-6
FACTOR = 3.0


class Roofline:
    """What the entry point names: a model that is made without arguments."""

    about = "time of a launch by bandwidth and instructions, from data sheets"

    def __init__(self) -> None:
        self.devices = [crosscast.device_named(key) for key in ("gtx1080", "titanx", "k40c")]

    def predict(self, profiles, devices, level):
        """Medians and limits in seconds, of shape (profiles, devices)."""
        centre = np.array([[self.seconds(profile, device) for device in devices] for profile in profiles])
        return centre, centre / FACTOR, centre * FACTOR

    def seconds(self, profile, device):
        """Seconds of one launch on one device."""
        numbers = device.numbers
        instructions = profile.metrics["total_instruction_count"]
        rate = numbers["cores"] * numbers["clock_hz"]
        moved = profile.metrics["total_memory_footprint"]
        return LAUNCH_S + max(instructions / rate, moved / numbers["bandwidth_bytes_per_s"])
