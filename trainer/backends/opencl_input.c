/* Pinned memory or, where none is to be had, any; its buffer on the device; the events between two queues. */
#define CL_TARGET_OPENCL_VERSION 120

#include "trainer/backends/opencl_input.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_BYTES 64 /* as a backend allocates */

struct opencl_input {
        cl_command_queue copies;
        cl_mem pinned, buffer; /* pinned: NULL where the host's memory is not */
        unsigned char *host;
        size_t size_bytes;
        bool given;           /* of the kernels' thread: all of it was copied in line with them */
        pthread_mutex_t lock; /* of what is below */
        cl_event used;        /* kernels that read what was there before; NULL = none */
        cl_event sent;        /* the last copy, behind which all others are; NULL = none */
        bool is_new;          /* that copy is not waited for yet */
        cl_int trouble;       /* the first of a copy */
};

/* A driver pins no more, or a limit is reached (RLIMIT_MEMLOCK): copies go on, through the driver's own
 * pinned memory. */
static void use_any_memory(struct opencl_input *i)
{
        if (i->pinned != NULL)
                (void) clReleaseMemObject(i->pinned);
        i->pinned = NULL;
        i->host = aligned_alloc(ALIGN_BYTES, (i->size_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES);
}

struct opencl_input *opencl_input_new(cl_context context, cl_command_queue copies, size_t size_bytes)
{
        struct opencl_input *i = calloc(1, sizeof(*i));
        cl_int code;

        if (i == NULL)
                return NULL;
        *i = (struct opencl_input){ .copies = copies, .size_bytes = size_bytes };
        (void) pthread_mutex_init(&i->lock, NULL);
        i->buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size_bytes, NULL, &code);
        i->pinned =
                clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size_bytes, NULL, &code);
        if (i->pinned != NULL && i->buffer != NULL)
                i->host = clEnqueueMapBuffer(copies, i->pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                             size_bytes, 0, NULL, NULL, &code);
        if (i->host == NULL && i->buffer != NULL)
                use_any_memory(i);
        if (i->host == NULL) {
                opencl_input_free(i);
                return NULL;
        }
        memset(i->host, 0, size_bytes);
        return i;
}

static void release_event(cl_event *event)
{
        if (*event != NULL)
                (void) clReleaseEvent(*event);
        *event = NULL;
}

void opencl_input_free(struct opencl_input *i)
{
        if (i == NULL)
                return;
        (void) clFinish(i->copies);
        release_event(&i->used);
        release_event(&i->sent);
        if (i->host != NULL && i->pinned != NULL)
                (void) clEnqueueUnmapMemObject(i->copies, i->pinned, i->host, 0, NULL, NULL);
        (void) clFinish(i->copies);
        if (i->pinned == NULL)
                free(i->host);
        if (i->pinned != NULL)
                (void) clReleaseMemObject(i->pinned);
        if (i->buffer != NULL)
                (void) clReleaseMemObject(i->buffer);
        (void) pthread_mutex_destroy(&i->lock);
        free(i);
}

void *opencl_input_host(const struct opencl_input *i)
{
        return i->host;
}

cl_mem opencl_input_buffer(const struct opencl_input *i)
{
        return i->buffer;
}

void opencl_input_send(struct opencl_input *i, size_t offset, size_t size_bytes)
{
        cl_event sent = NULL;
        cl_int code;

        (void) pthread_mutex_lock(&i->lock);
        code = clEnqueueWriteBuffer(i->copies, i->buffer, CL_FALSE, offset, size_bytes, i->host + offset,
                                    i->used != NULL ? 1 : 0, i->used != NULL ? &i->used : NULL, &sent);
        if (code == CL_SUCCESS)
                code = clFlush(i->copies); /* another queue waits for it */
        if (code != CL_SUCCESS && i->trouble == CL_SUCCESS)
                i->trouble = code;
        if (sent != NULL) {
                release_event(&i->sent);
                i->sent = sent;
                i->is_new = true;
        }
        (void) pthread_mutex_unlock(&i->lock);
}

cl_int opencl_input_give(struct opencl_input *i, cl_command_queue kernels)
{
        cl_int code;
        bool in_line;

        (void) pthread_mutex_lock(&i->lock);
        code = i->trouble;
        if (code == CL_SUCCESS && i->is_new)
                code = clEnqueueBarrierWithWaitList(kernels, 1, &i->sent, NULL);
        i->is_new = false;
        in_line = i->sent == NULL && !i->given;
        (void) pthread_mutex_unlock(&i->lock);
        if (code == CL_SUCCESS && in_line) {
                code = clEnqueueWriteBuffer(kernels, i->buffer, CL_FALSE, 0, i->size_bytes, i->host, 0, NULL,
                                            NULL);
                i->given = true;
        }
        return code;
}

cl_int opencl_input_reclaim(struct opencl_input *i, cl_command_queue kernels)
{
        cl_int code = CL_SUCCESS;

        (void) pthread_mutex_lock(&i->lock);
        if (i->sent != NULL) /* of a piece that nobody computed on, the copy may still read the memory */
                code = clWaitForEvents(1, &i->sent);
        if (i->given && code == CL_SUCCESS) /* and one in line with the kernels */
                code = clFinish(kernels);
        release_event(&i->sent);
        release_event(&i->used);
        i->is_new = false;
        i->given = false;
        if (code == CL_SUCCESS)
                code = clEnqueueMarkerWithWaitList(kernels, 0, NULL, &i->used);
        if (code == CL_SUCCESS)
                code = clFlush(kernels);
        (void) pthread_mutex_unlock(&i->lock);
        return code;
}
