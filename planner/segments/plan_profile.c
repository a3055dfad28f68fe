/* Reads the lines of a layer profile, and sorts its layers into backward order. */
#include "planner/segments/plan_profile.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define LINE_BYTES 4096

/* A layer of the profile that has been read so far. */
struct layer {
        uint64_t node;
        uint64_t parameter_bytes;
        double backward_ms;
};

struct layers {
        struct layer *layer;
        size_t count, room;
};

/* "KEY=NUMBER" somewhere in the line. */
static int find_number(const char *line, const char *key, double *ret)
{
        const char *at = strstr(line, key);
        char text[64];
        size_t size;

        if (at == NULL)
                return -EINVAL;
        at += strlen(key);
        size = strspn(at, "0123456789.eE+-");
        if (size == 0 || size >= sizeof(text))
                return -EINVAL;
        memcpy(text, at, size);
        text[size] = '\0';
        return text_parse_double(text, ret) < 0 || *ret < 0 ? -EINVAL : 0;
}

static int add_layer(struct layers *layers, const struct layer *layer)
{
        struct layer *added = array_add(&layers->layer, &layers->count, &layers->room, sizeof(*added));

        if (added == NULL)
                return -ENOMEM;
        *added = *layer;
        return 0;
}

/* "node12 -- ReLU(inplace) -- forward_compute_time=0.361, backward_compute_time=0.214, activation_size=1.000,
 * parameter_size=0.000"; lines that begin with a blank are the graph's edges. */
static int read_line(const char *line, size_t number, struct layers *layers, struct err *err)
{
        struct layer layer = { 0 };
        double bytes = 0;
        char digits[20];
        size_t size;

        if (isspace((unsigned char) line[0]) || line[0] == '\0')
                return 0;
        size = strspn(line + (text_starts_with(line, "node") ? 4 : 0), "0123456789");
        if (!text_starts_with(line, "node") || size == 0 || size >= sizeof(digits))
                return err_set(err, -EBADMSG, "line %zu: must begin with 'nodeN -- ' as a layer profile does",
                               number);
        memcpy(digits, line + 4, size);
        digits[size] = '\0';
        if (text_parse_uint64(digits, &layer.node) < 0 ||
            find_number(line, "backward_compute_time=", &layer.backward_ms) < 0)
                return err_set(err, -EBADMSG, "line %zu: node%s needs backward_compute_time=MS, 0 or more",
                               number, digits);
        if (find_number(line, "parameter_size=", &bytes) < 0 || bytes > (double) SEGMENTS_MAX_BYTES)
                return err_set(err, -EBADMSG, "line %zu: node%s needs parameter_size=BYTES, 0 or more",
                               number, digits);
        layer.parameter_bytes = (uint64_t) bytes;
        if (layers->count >= SEGMENTS_MAX_TENSORS)
                return err_set(err, -E2BIG, "line %zu: more than %zu layers", number, SEGMENTS_MAX_TENSORS);
        return add_layer(layers, &layer) < 0 ? err_set(err, -ENOMEM, "no memory for layers") : 0;
}

static int read_lines(const char *bytes, size_t size_bytes, struct layers *layers, struct err *err)
{
        char line[LINE_BYTES];
        size_t number = 1;

        for (size_t at = 0; at < size_bytes; number++) {
                const char *end = memchr(bytes + at, '\n', size_bytes - at);
                size_t size = end != NULL ? (size_t) (end - bytes) - at : size_bytes - at;
                int r;

                if (size >= sizeof(line))
                        return err_set(err, -EBADMSG, "line %zu: longer than %d characters", number,
                                       LINE_BYTES - 1);
                memcpy(line, bytes + at, size);
                line[size] = '\0';
                r = read_line(line, number, layers, err);
                if (r < 0)
                        return r;
                at += size + 1;
        }
        return 0;
}

static int last_node_first(const void *a, const void *b)
{
        const struct layer *left = a, *right = b;

        return (left->node < right->node) - (left->node > right->node);
}

static int make_tensors(const struct layers *layers, double speedup, struct plan_segments_request *request,
                        struct err *err)
{
        double backward_ms = 0;

        request->tensors = calloc(layers->count, sizeof(*request->tensors));
        if (request->tensors == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu layers", layers->count);
        for (size_t i = 0; i < layers->count; i++) {
                const struct layer *layer = &layers->layer[i];
                struct segment_tensor *tensor;
                char name[32];

                if (i > 0 && layer->node == layer[-1].node)
                        return err_set(err, -EBADMSG, "node%" PRIu64 " stands twice", layer->node);
                backward_ms += layer->backward_ms;
                if (layer->parameter_bytes == 0)
                        continue;
                (void) snprintf(name, sizeof(name), "node%" PRIu64, layer->node);
                tensor = &request->tensors[request->tensor_count];
                *tensor = (struct segment_tensor){ .name = strdup(name),
                                                   .bytes = layer->parameter_bytes,
                                                   .ready_ms = backward_ms / speedup };
                if (tensor->name == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu layers", layers->count);
                request->tensor_count++;
        }
        if (request->tensor_count == 0)
                return err_set(err, -EBADMSG,
                               "has no layer with parameters; give a profile with parameter_size above 0");
        return 0;
}

int plan_profile_read(const char *bytes, size_t size_bytes, double speedup, struct plan_segments_request *ret,
                      struct err *err)
{
        struct plan_segments_request request = { .max_segments = SEGMENTS_DEFAULT_MAX };
        struct layers layers = { 0 };
        int r = read_lines(bytes, size_bytes, &layers, err);

        if (r == 0 && layers.count == 0)
                r = err_set(err, -EBADMSG,
                            "has no layers; give lines 'nodeN -- NAME -- backward_compute_time=MS, ...'");
        if (r == 0) {
                assert(layers.layer != NULL);
                qsort(layers.layer, layers.count, sizeof(*layers.layer), last_node_first);
                r = make_tensors(&layers, speedup, &request, err);
        }
        free(layers.layer);
        if (r < 0) {
                plan_segments_request_free(&request);
                return r;
        }
        *ret = request;
        return 0;
}
