/* Reading: from a file to its objects: what is new in it, what changed, what is gone. */
#pragma once

#include "store/directory/store_dir.h"

void reading_file(struct store_dir *d, struct object_file *file); /* or forget it, if it is gone */

/* reading_recheck() - deliver its objects once more, each as it stands in the file now; a file that is not
 * what it was is read. Return: false when there is more to do, but `end_usec` (monotonic) has come. */
bool reading_recheck(struct store_dir *d, struct object_file *file, uint64_t end_usec);
