/* What every backend has from its row, with the members that a row may leave out. */
#include "trainer/operators/backend.h"

#include "trainer/operators/vector.h"

int backend_open(const struct backend_row *row, const struct backend_options *o, struct backend *ret,
                 struct err *err)
{
        struct backend b = { .row = row, .kernels = row->kernels };
        int r = row->open(o, &b, err);

        if (r == 0 && o->patches) {
                b.kernels.convolution_pool = NULL;
                b.kernels.convolution_pool_gradient = NULL;
        }
        if (r == 0)
                *ret = b;
        return r;
}

void backend_close(struct backend *b)
{
        if (b->row != NULL && b->row->close != NULL)
                b->row->close(b->state);
        b->row = NULL;
}

void *backend_allocate(const struct backend *b, size_t size_bytes)
{
        return b->row->allocate(b->state, size_bytes);
}

float *backend_floats(const struct backend *b, size_t count)
{
        return backend_allocate(b, (count > 0 ? count : 1) * sizeof(float));
}

void *backend_allocate_input(const struct backend *b, size_t size_bytes, void **ret_input)
{
        *ret_input = NULL;
        return b->row->allocate_input != NULL ? b->row->allocate_input(b->state, size_bytes, ret_input)
                                              : backend_allocate(b, size_bytes);
}

void backend_send(const struct backend *b, void *input, size_t offset, size_t size_bytes)
{
        if (input != NULL && size_bytes > 0)
                b->row->send(input, offset, size_bytes);
}

void backend_release(const struct backend *b, void *memory)
{
        b->row->release(b->state, memory);
}

bool backend_has_own_memory(const struct backend *b)
{
        return b->row->to_host != NULL;
}

void *backend_copy_begin(const struct backend *b, const float *memory, size_t count, float *to)
{
        return b->row->copy_begin(b->state, memory, count, to);
}

int backend_copy_wait(const struct backend *b, void *copy)
{
        return b->row->copy_wait(b->state, copy);
}

void backend_to_host(const struct backend *b, const void *memory)
{
        if (b->row->to_host != NULL)
                b->row->to_host(b->state, memory);
}

void backend_to_device(const struct backend *b, const void *memory)
{
        if (b->row->to_device != NULL)
                b->row->to_device(b->state, memory);
}

void backend_add(const struct backend *b, size_t count, const float *x, float *sum)
{
        if (b->kernels.add != NULL)
                b->kernels.add(b->state, count, x, sum);
        else
                vector_add(count, x, sum);
}

int backend_trouble(const struct backend *b, struct err *err)
{
        return b->row->trouble != NULL ? b->row->trouble(b->state, err) : 0;
}
