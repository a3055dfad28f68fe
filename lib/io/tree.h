/* Tree: read-only access to a machine's files under one root: "/", a directory, or a recorded machine file.
 *
 * Paths are relative to the root ("sys/bus/pci/devices"), never leave it (".." and absolute symbolic links
 * are resolved inside), and every read has a maximum. FIFOs, devices and sockets are never opened for
 * reading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct tree;

/* tree_open() - a directory. tree_open_machine() - a file written by `remuda machine record`. */
int tree_open(const char *root, struct tree **ret, struct err *err);
int tree_open_machine(const char *path, struct tree **ret, struct err *err);
void tree_close(struct tree *tree); /* accepts NULL */

const char *tree_root(const struct tree *tree); /* as given; for messages */
bool tree_is_live(const struct tree *tree);     /* the root is "/" */
