"""Recording of whole OpenCL applications: a layer under the program, its trace, and what comes of it."""
