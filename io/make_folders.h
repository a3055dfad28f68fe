/* Make folders: what a file's path needs above it. */
#pragma once

/* make_folders() - the folders above `path`, as far as they can be made. */
void make_folders(const char *path);
