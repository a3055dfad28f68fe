/* Tree of a directory: "/" or a folder that is read as a machine; links are resolved inside it. */
#pragma once

#include "agent/tree/tree.h"

int tree_directory_open(const char *root, struct tree **ret, struct err *err);
