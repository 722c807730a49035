"""IR to IR: each pass in a file of its own, in the order that `tack.passes.pipeline` gives."""
