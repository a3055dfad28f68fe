/* Remove folder: a private temporary folder and everything in it, links not followed. */
#pragma once

/* remove_folder() - only a folder whose own name begins with `prefix`; anything else is left alone. */
void remove_folder(const char *path, const char *prefix);
