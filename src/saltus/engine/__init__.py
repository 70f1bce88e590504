"""What carries any kernel's chains: keys and phases, the compiled loop, the driver, starts, files, arguments."""
