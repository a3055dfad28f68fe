/* The trained model is compressed, written, read back and measured beside what it was. */
#include "trainer/export/export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/read_file.h"
#include "trainer/export/channels.h"
#include "trainer/export/onnx_read.h"
#include "trainer/export/onnx_write.h"
#include "trainer/export/quantised.h"
#include "trainer/json_line.h"
#include "trainer/operators/vector.h"
#include "trainer/weights.h"

struct measured {
        double accuracy, loss, samples_per_s;
        size_t bytes;
};

static int compare_floats(const void *a, const void *b)
{
        float x = *(const float *) a, y = *(const float *) b;

        return (x > y) - (x < y);
}

/* The magnitude below which `share` of the values lie. */
static int find_threshold(const float *values, size_t count, double share, float *ret)
{
        CLEANUP(free_p) float *sizes = calloc(count, sizeof(*sizes));
        size_t out = (size_t) (share * (double) count);

        if (sizes == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                sizes[i] = fabsf(values[i]);
        qsort(sizes, count, sizeof(*sizes), compare_floats);
        *ret = out > 0 ? sizes[out - 1] : -1;
        return 0;
}

/* Leaves the smallest of each weight array out, as zeros; ONNX has no shorter form of them that others read.
 */
static int thin_out(const struct training *t)
{
        for (size_t i = 0; t->options->sparsity > 0 && i < t->model.tensor_count; i++) {
                const struct model_tensor *s = &t->model.tensors[i];
                float *values = t->parameters + s->offset, threshold;

                if (s->bias)
                        continue;
                if (find_threshold(values, s->count, t->options->sparsity, &threshold) < 0)
                        return -ENOMEM;
                for (size_t k = 0; k < s->count; k++)
                        values[k] = fabsf(values[k]) <= threshold ? 0 : values[k];
        }
        return 0;
}

static bool is_onnx(const struct train_options *o)
{
        size_t length = strlen(o->export_file);

        return length > 5 && strcmp(o->export_file + length - 5, ".onnx") == 0;
}

/* Writes one tensor and leaves in `values` what a reader of the file would have.
 * @channels: with a scale each, in 8 bits; 0 = as floats */
static int write_tensor(FILE *f, float *values, size_t count, size_t channels, double sparsity)
{
        CLEANUP(free_p) unsigned char *bits = calloc(count / 8 + 1, 1);
        CLEANUP(free_p) int8_t *bytes = calloc(count + 1, 1);
        CLEANUP(free_p) float *scales = calloc(channels + 1, sizeof(*scales));
        float threshold = -1;
        size_t kept = 0;

        if (bits == NULL || bytes == NULL || scales == NULL ||
            (sparsity > 0 && find_threshold(values, count, sparsity, &threshold) < 0))
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                if (fabsf(values[i]) <= threshold) {
                        values[i] = 0;
                        continue;
                }
                bits[i / 8] = (unsigned char) (bits[i / 8] | 1U << (i % 8));
                kept++;
        }
        if (channels > 0)
                channels_quantise(count / channels, channels, values, bytes, scales);
        (void) fprintf(f, "tensor %zu %zu %zu\n", count, kept, channels);
        (void) fwrite(scales, sizeof(*scales), channels, f);
        (void) fwrite(bits, 1, (count + 7) / 8, f);
        for (size_t i = 0; i < count; i++)
                if ((bits[i / 8] >> (i % 8) & 1) != 0)
                        (void) (channels > 0 ? fwrite(&bytes[i], 1, 1, f)
                                             : fwrite(&values[i], sizeof(float), 1, f));
        return 0;
}

/* How many scales a tensor has: one each output channel, or one alone; 0 = it stays as floats. */
static size_t scales_of(const struct training *t, const struct model_tensor *s)
{
        const char *quantise = t->options->quantise;

        if (quantise == NULL || s->bias)
                return 0;
        for (size_t i = 0; strcmp(quantise, "int8-tensor") != 0 && i < t->model.node_count; i++)
                if (t->model.nodes[i].weight_count > 0 && t->model.nodes[i].weight == s->offset)
                        return channels_of(&t->model.nodes[i]);
        return 1;
}

static int write_model(struct training *t, struct err *err)
{
        const struct train_options *o = t->options;
        bool quantise = o->quantise != NULL;
        FILE *f;
        bool whole = true;

        if (is_onnx(o))
                return thin_out(t) < 0 ? err_set(err, -ENOMEM, "--export: no memory for --sparsity")
                                       : onnx_write(&t->model, t->parameters, quantise, o->export_file, err);
        f = fopen(o->export_file, "we");
        if (f == NULL)
                return err_set(err, -errno, "--export: file '%s': %m", o->export_file);
        (void) fprintf(f, "remuda-export 2 model=%s tensors=%zu quantise=%s\n", t->model.name,
                       t->model.tensor_count, quantise ? "int8" : "none");
        for (size_t i = 0; whole && i < t->model.tensor_count; i++) {
                const struct model_tensor *s = &t->model.tensors[i];

                whole = write_tensor(f, t->parameters + s->offset, s->count, scales_of(t, s),
                                     s->bias ? 0 : o->sparsity) == 0;
        }
        whole = ferror(f) == 0 && whole;
        if (fclose(f) != 0 || !whole)
                return err_set(err, -EIO, "--export: file '%s' not written whole: %m", o->export_file);
        return 0;
}

static int measure(struct training *t, struct measured *m, struct err *err)
{
        uint64_t begin = record_now();

        if (training_evaluate(t, &m->accuracy, &m->loss, err) < 0)
                return err->code;
        m->samples_per_s =
                (double) dataset_count(t->data, DATASET_TEST) * 1e6 / (double) (record_now() - begin + 1);
        return 0;
}

/* The written model itself, in 8-bit products. */
static int measure_quantised(const struct training *t, const char *bytes, struct measured *m, struct err *err)
{
        CLEANUP(quantised_free_p) struct quantised *q = NULL;
        CLEANUP(free_p) float *x = calloc(QUANTISED_BATCH * shape_size(&t->model.input), sizeof(*x));
        size_t total = dataset_count(t->data, DATASET_TEST), right = 0, classes = t->model.classes;
        uint64_t begin;

        if (x == NULL)
                return err_set(err, -ENOMEM, "no memory to evaluate");
        if (quantised_open(&t->model, (const unsigned char *) bytes, m->bytes, &q, err) < 0)
                return err_wrap(err, err->code, "--export: file '%s'", t->options->export_file);
        begin = record_now();
        for (size_t first = 0; first < total; first += QUANTISED_BATCH) {
                size_t count = total - first < QUANTISED_BATCH ? total - first : QUANTISED_BATCH;
                int32_t labels[QUANTISED_BATCH];
                const float *values;

                if (dataset_load_test(t->data, first, count, x, labels, err) < 0)
                        return err->code;
                values = quantised_forward(q, x, count);
                for (size_t i = 0; i < count; i++)
                        right += vector_largest(classes, values + i * classes) == (size_t) labels[i];
        }
        m->samples_per_s = (double) total * 1e6 / (double) (record_now() - begin + 1);
        m->accuracy = (double) right / (double) total;
        return 0;
}

static int export_whole(struct training *t, struct err *err)
{
        struct measured before = { 0 }, after = { 0 };
        struct json_line line = { 0 };
        CLEANUP(free_p) char *bytes = NULL;
        int r;

        before.bytes = t->model.parameter_count * sizeof(float);
        if (measure(t, &before, err) < 0)
                return err->code;
        backend_to_host(&t->backend, t->parameters);
        if (write_model(t, err) < 0)
                return err->code;
        if (is_onnx(t->options) &&
            onnx_read(&t->model, "--export", t->options->export_file, t->parameters, err) < 0)
                return err->code;
        backend_to_device(&t->backend, t->parameters);
        if (read_file(t->options->export_file, READ_FILE_MAX_BYTES, &bytes, &after.bytes, err) < 0)
                return err_wrap(err, err->code, "--export");
        r = t->options->quantise != NULL && !is_onnx(t->options) ? measure_quantised(t, bytes, &after, err)
                                                                 : measure(t, &after, err);
        if (r < 0)
                return r;
        json_line_open(&line, NULL, '{');
        json_line_text(&line, "export", t->options->quantise != NULL ? t->options->quantise : "float32");
        json_line_uint(&line, "bytes_before", before.bytes);
        json_line_uint(&line, "bytes_after", after.bytes);
        json_line_real(&line, "accuracy_before", before.accuracy, 6);
        json_line_real(&line, "accuracy_after", after.accuracy, 6);
        json_line_real(&line, "samples_per_s_before", before.samples_per_s, 1);
        json_line_real(&line, "samples_per_s_after", after.samples_per_s, 1);
        json_line_close(&line, '}');
        json_line_print(&line, stdout);
        return 0;
}

struct collected {
        float *at;
};

static void collect(void *context, const float *values, size_t count)
{
        struct collected *c = context;

        memcpy(c->at, values, count * sizeof(*values));
        c->at += count;
}

/* A split model comes together on rank 0 for this alone. */
static int export_stages(struct training *t, struct err *err)
{
        struct training whole = *t;
        struct collected c;
        int r;

        if (t->world.rank > 0) {
                weights_stream(t, t->parameters, collect, NULL);
                return 0;
        }
        whole.stages = NULL;
        whole.staged = (struct training_staged){ 0 };
        whole.part = (struct training_part){ 0, t->model.node_count - 1, 0, t->model.parameter_count };
        whole.parameters =
                backend_allocate(&t->backend, t->model.parameter_count * sizeof(*whole.parameters));
        if (whole.parameters == NULL)
                return err_set(err, -ENOMEM, "--export: no memory for %zu parameters on rank 0",
                               t->model.parameter_count);
        c.at = whole.parameters;
        weights_stream(t, t->parameters, collect, &c);
        backend_to_device(&t->backend, whole.parameters);
        r = training_open_runner(&whole, err);
        if (r == 0)
                r = export_whole(&whole, err);
        runner_free(whole.runner);
        backend_release(&t->backend, whole.parameters);
        return r;
}

int export_run(struct training *t, struct err *err)
{
        if (t->stages != NULL)
                return export_stages(t, err);
        return t->world.rank == 0 ? export_whole(t, err) : 0;
}
