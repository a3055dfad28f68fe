/* Open tree: the pair of options --root DIR and --machine FILE, wherever a command takes them. */
#pragma once

#include "agent/tree/tree.h"

/* open_tree() - @root, @machine: at most one is not NULL; neither = "/". As tree_directory_open(). */
int open_tree(const char *root, const char *machine, struct tree **ret, struct err *err);
