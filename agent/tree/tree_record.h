/* Tree record: what was read of a machine, as a machine file; and a machine file as a directory again. */
#pragma once

#include "agent/tree/tree.h"

struct tree_record;

/* tree_record_begin() - from now on remember everything that is read, listed, or followed.
 * tree_record_take() - what was remembered, as a machine file without a head.
 * @mask: replace serial numbers, UUIDs and hardware addresses by others of the same form, equal for equal */
int tree_record_begin(struct tree *tree, struct err *err);
int tree_record_take(const struct tree *tree, bool mask, struct text *out, struct err *err);

/* tree_record_expand() - write a machine file as a directory tree: files, directories and links; device
 * nodes become empty files that stand in for them. `directory` is made; it must be absent or empty. */
int tree_record_expand(const struct tree *tree, const char *directory, struct err *err);

/* For the tree: every call may be made with NULL. */
void tree_record_free(struct tree_record *recording);
void tree_record_note(struct tree_record *recording, const char *path, enum tree_kind kind, const void *bytes,
                      size_t size_bytes); /* bytes: content, or a link's target */
