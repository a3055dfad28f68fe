/* Writes a network on given devices as the input of the other planners, with the assumptions of the estimate.
 */
#include "planner/models/network_forms.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "planner/shards/shards.h"

#define WORKERS_MAX ((size_t) 1 << 16)
#define NO_LIMIT    ((uint64_t) 1 << 50) /* memory that is not known does not limit; the estimate says whose */

static void write_estimate(struct json_writer *json, const struct network_forms_request *request)
{
        const struct network_estimate_assumptions *a = &request->assumptions;
        struct text line = { 0 };

        text_printf(&line,
                    "%s by formula, not measured: %.0f %% of each peak is reached; %s, %" PRIu64
                    " bytes an element, %" PRIu64 " bytes a parameter; multiply-adds alone are counted",
                    request->network->name, a->efficiency * 100,
                    a->training ? "forward and backward" : "forward", a->bytes_per_element,
                    a->training ? a->bytes_per_parameter : a->bytes_per_element);
        for (size_t d = 0; d < request->device_count; d++)
                if (request->devices[d].memory_bytes == 0)
                        text_printf(&line, "; the memory of %s is not known and does not limit",
                                    request->devices[d].name);
        json_writer_string(json, "estimate", line.data != NULL ? line.data : "by formula");
        text_free(&line);
}

static void write_layer(struct json_writer *json, const struct network_forms_request *request,
                        const struct network_estimate_block *block)
{
        const struct network_estimate_assumptions *a = &request->assumptions;

        json_writer_open(json, NULL, '{');
        json_writer_string(json, "name", block->name);
        json_writer_open(json, "ms", '{');
        for (size_t d = 0; d < request->device_count; d++)
                json_writer_double(json, request->devices[d].name,
                                   network_estimate_ms(block->multiply_adds, &request->devices[d], a));
        json_writer_close(json, '}');
        json_writer_uint64(json, "memory_bytes", network_estimate_memory_bytes(block, a));
        json_writer_uint64(json, "params_bytes", block->parameters * a->bytes_per_element);
        json_writer_uint64(json, "activation_bytes", block->crossing * a->samples * a->bytes_per_element);
        json_writer_uint64(json, "held_bytes", block->activations * a->samples * a->bytes_per_element);
        json_writer_close(json, '}');
}

int network_forms_split(const struct network_forms_request *request, struct text *out, struct err *err)
{
        CLEANUP(free_p) struct network_estimate_block *blocks = NULL;
        struct json_writer json = { .text = out };
        size_t count = 0;
        int r = network_estimate_blocks(request->network, &blocks, &count, err);

        if (r < 0)
                return r;
        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "name", request->network->name);
        write_estimate(&json, request);
        json_writer_uint64(&json, "samples", request->assumptions.samples);
        json_writer_open(&json, "layers", '[');
        for (size_t i = 0; i < count; i++)
                write_layer(&json, request, &blocks[i]);
        json_writer_close(&json, ']');
        json_writer_open(&json, "devices", '[');
        for (size_t d = 0; d < request->device_count; d++) {
                const struct network_estimate_device *device = &request->devices[d];

                json_writer_open(&json, NULL, '{');
                json_writer_string(&json, "type", device->name);
                json_writer_uint64(&json, "count", device->count);
                json_writer_uint64(&json, "memory_bytes",
                                   device->memory_bytes > 0 ? device->memory_bytes : NO_LIMIT);
                json_writer_double(&json, "bytes_per_ms", request->link_gb_per_s * 1e6);
                json_writer_close(&json, '}');
        }
        json_writer_close(&json, ']');
        json_writer_string(&json, "schedule", request->assumptions.training ? "1f1b" : "inference");
        json_writer_uint64(&json, "microbatches", request->microbatches);
        json_writer_close(&json, '}');
        return 0;
}

/* Ready times of the gradients: two thirds of the work is backward, from the last operation to the first. */
int network_forms_segments(const struct network_forms_request *request, struct text *out, struct err *err)
{
        struct network_estimate_assumptions backward = request->assumptions;
        const struct network *network = request->network;
        struct json_writer json = { .text = out };
        double ready_ms = 0;

        if (!request->has_network)
                return err_set(err, -EINVAL,
                               "--network: is missing; give 10gbe:RANKS, 56gib:RANKS or "
                               "ALPHA_MS,BETA_MS_PER_BYTE");
        backward.training = false; /* network_estimate_ms() of the forward pass, doubled below */
        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "name", network->name);
        write_estimate(&json, request);
        json_writer_open(&json, "tensors", '[');
        for (size_t i = network->count; i-- > 0;) {
                const struct network_operation *operation = &network->operators[i];

                ready_ms += 2 * network_estimate_ms(network_operation_multiply_adds(operation),
                                                    &request->devices[0], &backward);
                if (network_operation_parameters(operation) == 0)
                        continue;
                json_writer_open(&json, NULL, '{');
                json_writer_string(&json, "name", operation->name);
                json_writer_uint64(&json, "bytes",
                                   network_operation_parameters(operation) *
                                           request->assumptions.bytes_per_element);
                json_writer_double(&json, "ready_ms", ready_ms);
                json_writer_close(&json, '}');
        }
        json_writer_close(&json, ']');
        json_writer_double(&json, "alpha_ms", request->alpha_ms);
        json_writer_double(&json, "beta_ms_per_byte", request->beta_ms_per_byte);
        json_writer_close(&json, '}');
        return 0;
}

static double samples_per_s(const struct network_forms_request *request,
                            const struct network_estimate_device *device)
{
        struct network_estimate_assumptions one = request->assumptions;

        one.samples = 1;
        return 1000.0 / network_estimate_ms(network_totals(request->network).multiply_adds, device, &one);
}

static size_t device_total(const struct network_forms_request *request)
{
        size_t total = 0;

        for (size_t d = 0; d < request->device_count; d++)
                total += request->devices[d].count;
        return total;
}

/* Bytes that one device holds for its largest share of a step, all activations kept. */
static double bytes_held(const struct network_forms_request *request, uint64_t samples)
{
        struct network_totals totals = network_totals(request->network);
        const struct network_estimate_assumptions *a = &request->assumptions;

        return (double) totals.parameters *
                       (double) (a->training ? a->bytes_per_parameter : a->bytes_per_element) +
               (a->training ? (double) totals.activations * (double) samples * (double) a->bytes_per_element
                            : 0);
}

/* The largest share whose activations fit beside what a device holds anyway; UINT64_MAX = as many as you
 * like. */
static int share_limit(const struct network_forms_request *request,
                       const struct network_estimate_device *device, uint64_t *ret, struct err *err)
{
        double empty = bytes_held(request, 0), each = bytes_held(request, 1) - empty,
               room = (double) device->memory_bytes - empty;

        *ret = UINT64_MAX;
        if (device->memory_bytes == 0 || (room >= 0 && each <= 0))
                return 0;
        if (room < each)
                return err_set(
                        err, -EINVAL,
                        "%s: %.4g GiB are held with one sample, and %s has %.4g: it can have no share; "
                        "give devices with more memory, or cut the model (--as split)",
                        request->network->name, (empty + each) / (double) (1 << 30), device->name,
                        (double) device->memory_bytes / (double) (1 << 30));
        if (room / each < (double) request->batch)
                *ret = (uint64_t) (room / each);
        return 0;
}

int network_forms_shards(const struct network_forms_request *request, struct text *out, struct err *err)
{
        struct json_writer json = { .text = out };

        if (device_total(request) > WORKERS_MAX)
                return err_set(err, -E2BIG, "%zu devices are more than %zu", device_total(request),
                               WORKERS_MAX);
        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "name", request->network->name);
        write_estimate(&json, request);
        json_writer_uint64(&json, "batch", request->batch);
        json_writer_open(&json, "workers", '[');
        for (size_t d = 0; d < request->device_count; d++) {
                uint64_t limit;
                int r = share_limit(request, &request->devices[d], &limit, err);

                if (r < 0)
                        return r;
                for (uint64_t i = 0; i < request->devices[d].count; i++) {
                        char name[96];

                        (void) text_format(name, sizeof(name), "%s-%" PRIu64, request->devices[d].name, i);
                        json_writer_open(&json, NULL, '{');
                        json_writer_string(&json, "name", name);
                        json_writer_double(&json, "speed", samples_per_s(request, &request->devices[d]));
                        if (limit != UINT64_MAX)
                                json_writer_uint64(&json, "max", limit);
                        json_writer_close(&json, '}');
                }
        }
        json_writer_close(&json, ']');
        json_writer_close(&json, '}');
        return 0;
}

/* The exact shares of the batch over all devices; shares of one kind differ by one at most. */
struct forecast {
        struct shard *shards; /* [total] */
        struct shards_plan plan;
        size_t total;
};

static int make_forecast(const struct network_forms_request *request, struct forecast *ret, struct err *err)
{
        CLEANUP(free_p) struct shard_worker *workers = NULL;
        size_t total = device_total(request), at = 0;
        int r;

        if (total > WORKERS_MAX || total == 0)
                return err_set(err, -E2BIG, "give 1 to %zu devices, not %zu", WORKERS_MAX, total);
        workers = calloc(total, sizeof(*workers));
        ret->shards = calloc(total, sizeof(*ret->shards));
        if (workers == NULL || ret->shards == NULL) {
                free(TAKE(ret->shards));
                return err_set(err, -ENOMEM, "no memory for %zu devices", total);
        }
        for (size_t d = 0; d < request->device_count; d++)
                for (uint64_t i = 0; i < request->devices[d].count; i++)
                        workers[at++].speed = samples_per_s(request, &request->devices[d]);
        ret->total = total;
        r = shards_plan(workers, total, request->batch, ret->shards, &ret->plan, err);
        if (r < 0)
                free(TAKE(ret->shards));
        return r;
}

static void write_devices(struct json_writer *json, const struct network_forms_request *request,
                          const struct forecast *forecast)
{
        size_t at = 0;

        json_writer_open(json, "devices", '[');
        for (size_t d = 0; d < request->device_count; d++) {
                const struct network_estimate_device *device = &request->devices[d];
                uint64_t share = device->count > 0 ? forecast->shards[at].batch : 0;

                json_writer_open(json, NULL, '{');
                json_writer_string(json, "name", device->name);
                json_writer_uint64(json, "count", device->count);
                json_writer_double(json, "tflops", device->tflops);
                json_writer_double(json, "samples_per_s", samples_per_s(request, device));
                json_writer_uint64(json, "batch", share);
                json_writer_double(json, "held_bytes", bytes_held(request, share));
                if (device->memory_bytes > 0)
                        json_writer_bool(json, "fits",
                                         bytes_held(request, share) <= (double) device->memory_bytes);
                else
                        json_writer_null(json, "fits");
                json_writer_close(json, '}');
                at += device->count;
        }
        json_writer_close(json, ']');
}

static void append_table(const struct network_forms_request *request, const struct forecast *forecast,
                         struct text *out)
{
        struct network_totals totals = network_totals(request->network);
        size_t at = 0;

        text_printf(out, "%s: %" PRIu64 " parameters, %.4g multiply-adds forward a sample\n\n",
                    request->network->name, totals.parameters, (double) totals.multiply_adds);
        text_printf(out, "%-24s %6s %9s %14s %8s %10s %s\n", "device", "count", "TFLOP/s", "samples/s each",
                    "batch", "GiB held", "fits");
        for (size_t d = 0; d < request->device_count; d++) {
                const struct network_estimate_device *device = &request->devices[d];
                uint64_t share = device->count > 0 ? forecast->shards[at].batch : 0;
                double held = bytes_held(request, share);

                text_printf(out, "%-24s %6" PRIu64 " %9.4g %14.5g %8" PRIu64 " %10.2f %s\n", device->name,
                            device->count, device->tflops, samples_per_s(request, device), share,
                            held / (double) (1 << 30),
                            device->memory_bytes == 0               ? "not known"
                            : held <= (double) device->memory_bytes ? "yes"
                                                                    : "no");
                at += device->count;
        }
        text_printf(out,
                    "\na step of %" PRIu64 " samples: %.5g ms, %.5g samples/s, communication not counted\n",
                    request->batch, forecast->plan.step_ms,
                    (double) request->batch / forecast->plan.step_ms * 1000);
        text_printf(out, "an estimate by formula (%.0f %% of each peak), not measured\n",
                    request->assumptions.efficiency * 100);
}

int network_forms_answer(const struct network_forms_request *request, bool json, struct text *out,
                         struct err *err)
{
        struct network_totals totals = network_totals(request->network);
        struct json_writer writer = { .text = out };
        struct forecast forecast = { 0 };
        int r = make_forecast(request, &forecast, err);

        if (r < 0)
                return r;
        assert(forecast.shards != NULL);
        if (!json) {
                append_table(request, &forecast, out);
                free(forecast.shards);
                return 0;
        }
        json_writer_open(&writer, NULL, '{');
        json_writer_string(&writer, "name", request->network->name);
        write_estimate(&writer, request);
        json_writer_uint64(&writer, "parameters", totals.parameters);
        json_writer_uint64(&writer, "multiply_adds", totals.multiply_adds);
        json_writer_uint64(&writer, "activations", totals.activations);
        json_writer_uint64(&writer, "batch", request->batch);
        json_writer_double(&writer, "step_ms", forecast.plan.step_ms);
        json_writer_double(&writer, "samples_per_s", (double) request->batch / forecast.plan.step_ms * 1000);
        write_devices(&writer, request, &forecast);
        json_writer_close(&writer, '}');
        free(forecast.shards);
        return 0;
}
