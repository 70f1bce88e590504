"""The run: the chunked loop, what it keeps, what it survives. It never adapts.

sample.py `sample` · resuming.py `resume` · opening.py `open`, `kernel_of` · saving.py `save` · verify.py `verify`, `status`
"""
