/* ONNX read: the weights of a file that onnx_write() wrote, also in 8 bits, back into a model's parameters.
 * The file is untrusted: what it holds is found by name and has to have the model's own sizes. Other ONNX
 * files are refused: their graphs may mean anything. */
#pragma once

#include "base/err.h"
#include "trainer/model.h"

/* onnx_read() - @parameters: of the whole model, filled. onnx_read_bytes() - of a file's bytes; its errors
 * name no file.
 * @option: begins the messages, "--import"
 * Return: 0, -EINVAL: damaged, of another model, of another program; -E2BIG, -ENOENT ... of the file;
 * -ENOMEM. */
int onnx_read(const struct model *m, const char *option, const char *path, float *parameters,
              struct err *err);
int onnx_read_bytes(const struct model *m, const uint8_t *bytes, size_t size_bytes, float *parameters,
                    struct err *err);
