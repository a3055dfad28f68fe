# The same answer on every machine: a product and a sum stay two roundings, where the processor could fuse them.
CFLAGS_lib_core  += -ffp-contract=off
