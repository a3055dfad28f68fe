/* Measured file: what `remuda devices --measure --save` wrote on this machine, for whoever decides by it. */
#pragma once

#include "agent/inventory/measured_json.h"

/* measured_file_read() - @ret: released with measured_json_free(). Return: 0; -ENOENT (nothing is measured);
 * another negative errno with the file's name in *err. */
int measured_file_read(const char *path, struct measured_json_list *ret, struct err *err);
