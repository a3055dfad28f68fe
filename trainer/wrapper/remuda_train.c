/* The library for other people's loops: the sampler and the world behind a few calls. */
#include "trainer/wrapper/remuda_train.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/whole_file.h"
#include "trainer/data/sampler.h"
#include "trainer/in_step/patience.h"
#include "trainer/in_step/recut.h"
#include "trainer/in_step/word.h"
#include "trainer/json_line.h"
#include "trainer/shares.h"
#include "trainer/world.h"
#include "trainer/wrapper/buckets.h"
#include "trainer/wrapper/device_memory.h"
#include "trainer/wrapper/loop_rule.h"

#define TEXT_OF(x)  #x
#define NUMBER(x)   TEXT_OF(x)
#define VERSION     "libremuda-train-" NUMBER(REMUDA_TRAIN_VERSION) /* of what ranks tell each other */
#define MAGIC       "remuda-train-state 1\n"
#define SHARE_MAX   (1 << 24) /* samples */
#define PIECE_BYTES ((size_t) 1 << 30)

struct remuda_train {
        struct world world;
        struct sampler *sampler;
        struct sampler_rule rule; /* of the sampler; its shares are those of the beginning */
        struct shares shares;
        uint32_t *ids;
        uint64_t step, last_step, epoch, samples_done;
        size_t count, batch_now; /* of the step begun last */
        uint64_t seed;
        struct buckets *buckets;
        bool alike;         /* all ranks have rank 0's parameters */
        bool said_segments; /* that they do not fit */
        bool recuts;        /* new shares can come */
        struct recut recut;
        struct word word;
        bool patient;       /* some rank waits long: all sleep meanwhile */
        bool computing;     /* between remuda_train_next() and the end of the step, outside of this library */
        uint64_t back_usec; /* when the loop went on last */
        uint64_t open_usec, busy_usec;
        int progress;
        bool owns_progress;
};

struct state { /* follows MAGIC in a file; then the parameters, then the SHA-256 of all before */
        uint64_t step, seed, batch, count;
};

static bool all_done; /* a run of this process came to its end */

/* A loop that came to its end need not close its run. One that leaves in the middle must not wait for the
 * others here: the launcher ends them. */
static void end_world(void)
{
        int begun = 0, ended = 0;

        MPI_Initialized(&begun);
        MPI_Finalized(&ended);
        if (all_done && begun && !ended)
                MPI_Finalize();
}

static int complain(const struct err *err)
{
        (void) fprintf(stderr, "remuda-train: %s\n", err->msg);
        return -1;
}

/* What a launcher assigned to this rank. Return: 0, with SHARES_NOT_ASSIGNED if nothing. */
static int find_assigned(uint64_t *ret_own, struct err *err)
{
        const char *assigned = getenv("REMUDA_BATCH");

        *ret_own = SHARES_NOT_ASSIGNED;
        if (assigned == NULL || assigned[0] == '\0')
                return 0;
        if (text_parse_uint64(assigned, ret_own) < 0 || *ret_own > SHARE_MAX)
                return err_set(err, -EINVAL, "REMUDA_BATCH '%.40s': a whole number from 0 to %d is wanted",
                               assigned, SHARE_MAX);
        return 0;
}

/* Every rank comes along, so that none is left waiting. What was assigned to ranks decides, not `batch`. */
static int find_shares(struct remuda_train *r, size_t batch, struct err *err)
{
        size_t n = (size_t) r->world.size, assigned = 0;
        CLEANUP(free_p) struct shares_assigned *all = calloc(n, sizeof(*all));
        struct shares_assigned own = { .batch = SHARES_NOT_ASSIGNED, .weight = -1 };
        int result = find_assigned(&own.batch, err);

        r->shares = (struct shares){ .workers = n, .of = calloc(n, sizeof(*r->shares.of)) };
        if (result == 0 && (all == NULL || r->shares.of == NULL))
                result = err_set(err, -ENOMEM, "no memory for %zu shares", n);
        result = world_agree(&r->world, result, err);
        if (result < 0 || all == NULL)
                return result;
        all[r->world.rank] = own;
        if (r->world.parallel)
                MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int) sizeof(*all), MPI_BYTE, MPI_COMM_WORLD);
        for (size_t i = 0; i < n; i++)
                assigned += all[i].batch != SHARES_NOT_ASSIGNED ? (size_t) all[i].batch : 0;
        if (assigned == 0 && batch == 0)
                result = err_set(err, -EINVAL, "a batch of no samples: 1 or more are wanted");
        else
                result = shares_cut(&r->shares, all, assigned > 0 ? 0 : batch, err);
        return world_agree(&r->world, result, err);
}

/* REMUDA_SEGMENTS: rising numbers of tensors. */
static int find_segments(struct train_options_list *ret, struct err *err)
{
        const char *value = getenv("REMUDA_SEGMENTS");
        CLEANUP(free_p) char *copy = strdup(value != NULL ? value : "");
        char *rest = copy, *word;
        uint64_t number;

        if (value == NULL || value[0] == '\0')
                return 0;
        ret->values = calloc(strlen(value) + 1, sizeof(*ret->values));
        if (copy == NULL || ret->values == NULL)
                return err_set(err, -ENOMEM, "no memory for the segments");
        while ((word = strsep(&rest, ",")) != NULL) {
                if (text_parse_uint64(word, &number) < 0 || number >= SHARE_MAX ||
                    (ret->count > 0 && number <= ret->values[ret->count - 1]))
                        return err_set(
                                err, -EINVAL,
                                "REMUDA_SEGMENTS '%.80s': rising numbers with commas between are wanted",
                                value);
                ret->values[ret->count++] = (size_t) number;
        }
        return 0;
}

static int open_buckets(struct remuda_train *r, struct err *err)
{
        const char *value = getenv("REMUDA_SEGMENTS");
        bool none = value != NULL && strcmp(value, "none") == 0;
        struct train_options_list segments = { 0 };
        int result = none ? 0 : find_segments(&segments, err);

        if (result == 0)
                r->buckets = buckets_new(r->world.parallel, none ? NULL : &segments);
        free(segments.values);
        return result < 0           ? result
               : r->buckets != NULL ? 0
                                    : err_set(err, -ENOMEM, "no memory for the gradients");
}

/* Collective. */
static void open_recut(struct remuda_train *r)
{
        const char *path = getenv("REMUDA_SHARES");
        bool takes = path != NULL && path[0] != '\0' && r->world.size > 1 && r->rule.exchange <= 0;

        r->recuts = recut_open(&r->recut, &r->world, takes ? path : NULL);
}

static int open_progress(struct remuda_train *r, struct err *err)
{
        const char *where = getenv("REMUDA_PROGRESS");
        uint64_t fd;

        r->progress = -1;
        if (where == NULL || where[0] == '\0')
                return 0;
        if (text_parse_uint64(where, &fd) == 0 && fd < 1 << 20) {
                r->progress = (int) fd;
                return 0;
        }
        r->progress = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        r->owns_progress = true;
        return r->progress >= 0 ? 0 : err_set(err, -errno, "REMUDA_PROGRESS '%s': %m", where);
}

static int open_run(struct remuda_train *r, size_t samples, size_t epochs, struct err *err)
{
        r->rule.seed = r->seed;
        r->rule.samples = samples;
        r->rule.batch = r->shares.batch;
        r->rule.workers = (size_t) r->world.size;
        r->rule.shares = r->shares.of;
        if (sampler_new(&r->rule, &r->sampler, err) < 0 || open_progress(r, err) < 0 ||
            open_buckets(r, err) < 0)
                return err->code;
        r->last_step = epochs * sampler_steps(r->sampler, 0);
        r->ids = calloc(r->shares.batch, sizeof(*r->ids));
        return r->ids != NULL ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", r->shares.batch);
}

static int agree_on_run(struct remuda_train *r, size_t samples, size_t epochs, struct err *err)
{
        char line[256];

        (void) text_format(line, sizeof(line),
                           "samples=%zu batch=%zu seed=%llu epochs=%zu order=%d exchange=%.17g", samples,
                           r->shares.batch, (unsigned long long) r->seed, epochs, (int) r->rule.order,
                           r->rule.exchange);
        return world_same(&r->world, line, "run", err);
}

struct remuda_train *remuda_train_open(size_t samples, size_t batch, uint64_t seed, size_t epochs)
{
        struct remuda_train *r = calloc(1, sizeof(*r));
        struct err err = { 0 };
        int result;

        if (r == NULL)
                return NULL;
        r->seed = seed;
        r->progress = -1;
        r->open_usec = clock_monotonic_usec();
        if (world_open(&r->world, &err) < 0) {
                (void) complain(&err);
                free(r);
                return NULL;
        }
        result = world_same(&r->world, VERSION, "version (install the same on every node)", &err);
        if (result == 0)
                result = world_agree(&r->world, loop_rule_read(&r->rule, &err), &err);
        if (result == 0)
                result = find_shares(r, batch, &err);
        if (result == 0)
                result = agree_on_run(r, samples, epochs, &err);
        if (result == 0)
                result = world_agree(&r->world, open_run(r, samples, epochs, &err), &err);
        if (result < 0) {
                if (r->world.rank == 0)
                        (void) complain(&err);
                remuda_train_close(r);
                return NULL;
        }
        open_recut(r);
        r->alike = r->world.size == 1;
        (void) atexit(end_world);
        return r;
}

void remuda_train_close(struct remuda_train *r)
{
        if (r == NULL)
                return;
        if (r->owns_progress && r->progress >= 0)
                (void) close(r->progress);
        word_end(&r->word);
        recut_close(&r->recut);
        buckets_free(r->buckets);
        sampler_free(r->sampler);
        shares_free(&r->shares);
        free(r->ids);
        world_close(&r->world);
        free(r);
}

int remuda_train_rank(const struct remuda_train *r)
{
        return r->world.rank;
}

int remuda_train_size(const struct remuda_train *r)
{
        return r->world.size;
}

uint64_t remuda_train_step(const struct remuda_train *r)
{
        return r->step;
}

uint64_t remuda_train_epoch(const struct remuda_train *r)
{
        return r->epoch;
}

double remuda_train_weight(const struct remuda_train *r)
{
        return r->batch_now > 0 ? (double) r->count / (double) r->batch_now : 0;
}

/* Time of the loop's own counts as computing; time in here is waiting for others. */
static void pause_computing(struct remuda_train *r)
{
        if (r->computing)
                r->busy_usec += clock_monotonic_usec() - r->back_usec;
}

static void go_on_computing(struct remuda_train *r)
{
        r->back_usec = clock_monotonic_usec();
}

/* The step that comes is the first that can still be cut anew: nothing of it has been handed out. */
static int take_shares(struct remuda_train *r, struct err *err)
{
        struct live_shares shares;
        int result = recut_take(&r->recut, &r->world, r->step, &shares, err);

        if (result < 0)
                return result;
        for (size_t i = 0; i < shares.count; i++)
                r->shares.of[i] = shares.of[i];
        result = sampler_recut(r->sampler, shares.step, r->shares.of, err);
        live_shares_free(&shares);
        return result;
}

/* Between two steps, all ranks together. */
static void hear_of_shares(struct remuda_train *r)
{
        struct err err = { 0 };

        if (!r->recuts)
                return;
        word_end(&r->word);
        if (all_done)
                return;
        if (r->word.heard[WORD_SHARES] > r->recut.taken && take_shares(r, &err) < 0)
                remuda_train_fail(r, err.msg);
        r->patient = r->word.heard[WORD_WAITED] >= PATIENCE_WORTH_USEC;
        r->word.said[WORD_SHARES] = recut_look(&r->recut, &r->world, 0, r->shares.batch);
        word_begin(&r->word);
}

long remuda_train_next(struct remuda_train *r, const uint32_t **ret_ids)
{
        size_t epoch_step;
        int count;

        pause_computing(r);
        r->computing = false;
        all_done = r->step >= r->last_step;
        hear_of_shares(r);
        if (all_done)
                return -1;
        sampler_locate(r->sampler, r->step, &r->epoch, &epoch_step);
        count = sampler_chunk(r->sampler, r->epoch, epoch_step, (size_t) r->world.rank, r->ids);
        if (count < 0)
                remuda_train_fail(r, "no memory for the sample order");
        r->step++;
        r->count = (size_t) count;
        r->batch_now = sampler_batch(r->sampler, r->epoch, epoch_step);
        r->samples_done += r->count;
        *ret_ids = r->ids;
        r->computing = true;
        go_on_computing(r);
        return count;
}

int remuda_train_broadcast(struct remuda_train *r, void *values, size_t size_bytes)
{
        struct err err = { 0 };
        bool on_device = device_memory_is(values, size_bytes);
        CLEANUP(free_p) void *staged = on_device ? malloc(size_bytes) : NULL;
        int result = on_device ? device_memory_check(&err) : 0;

        if (result == 0 && on_device && staged == NULL)
                result = err_set(&err, -ENOMEM, "no memory for %zu bytes of parameters", size_bytes);
        if (world_agree(&r->world, result, &err) < 0)
                return r->world.rank == 0 ? complain(&err) : -1;
        if (on_device)
                device_memory_copy(staged, values, size_bytes);
        for (size_t done = 0; r->world.parallel && done < size_bytes; done += PIECE_BYTES) {
                size_t some = size_bytes - done < PIECE_BYTES ? size_bytes - done : PIECE_BYTES;

                MPI_Bcast((char *) (on_device ? staged : values) + done, (int) some, MPI_BYTE, 0,
                          MPI_COMM_WORLD);
        }
        if (on_device)
                device_memory_copy(values, staged, size_bytes);
        r->alike = true;
        return 0;
}

/* The library never sees the parameters: it can only say that nobody has made them alike. */
static void warn_unlike(struct remuda_train *r)
{
        if (!r->alike && r->world.rank == 0)
                (void) fprintf(
                        stderr,
                        "remuda-train: the parameters were not broadcast: ranks that begin with unlike "
                        "ones stay unlike; call remuda_train_broadcast(), in Python give `parameters=` "
                        "at the beginning\n");
        r->alike = true;
}

static int add_gradient(struct remuda_train *r, void *gradient, size_t count, enum remuda_train_type type)
{
        struct err err = { 0 };

        warn_unlike(r);
        return buckets_add(r->buckets, gradient, count, type, (float) remuda_train_weight(r), &err) == 0
                       ? 0
                       : complain(&err);
}

static void wait_for_sums(struct remuda_train *r)
{
        uint64_t at = clock_monotonic_usec();
        struct err err = { 0 };
        int result;

        if (r->patient)
                patience_gather();
        result = buckets_wait(r->buckets, &err);
        r->word.said[WORD_WAITED] = clock_monotonic_usec() - at;
        if (result == 0 || r->said_segments || r->world.rank > 0)
                return;
        r->said_segments = true;
        (void) complain(&err);
}

int remuda_train_reduce_begin(struct remuda_train *r, void *gradient, size_t count,
                              enum remuda_train_type type)
{
        int result;

        pause_computing(r);
        result = add_gradient(r, gradient, count, type);
        go_on_computing(r);
        return result;
}

int remuda_train_reduce_wait(struct remuda_train *r)
{
        pause_computing(r);
        wait_for_sums(r);
        go_on_computing(r);
        return 0;
}

int remuda_train_reduce(struct remuda_train *r, float *gradient, size_t count)
{
        int result;

        pause_computing(r);
        result = add_gradient(r, gradient, count, REMUDA_TRAIN_FLOAT32);
        wait_for_sums(r);
        go_on_computing(r);
        return result;
}

void remuda_train_progress(struct remuda_train *r, double loss)
{
        struct json_line line = { 0 };

        pause_computing(r);
        r->computing = false;
        if (r->progress < 0)
                return;
        json_line_open(&line, NULL, '{');
        json_line_uint(&line, "rank", (uint64_t) r->world.rank);
        json_line_uint(&line, "step", r->step > 0 ? r->step - 1 : 0);
        json_line_uint(&line, "epoch", r->epoch);
        json_line_uint(&line, "samples", r->samples_done);
        json_line_real(&line, "seconds", (double) (clock_monotonic_usec() - r->open_usec) / 1e6, 6);
        json_line_real(&line, "busy_seconds", (double) r->busy_usec / 1e6, 6);
        if (r->recuts)
                json_line_uint(&line, "shares_step",
                               sampler_since(r->sampler, r->step > 0 ? r->step - 1 : 0));
        else
                json_line_real(&line, "shares_step", NAN, 0); /* null: they stay */
        json_line_real(&line, "loss", isfinite(loss) ? loss : 0.0, 6);
        json_line_close(&line, '}');
        text_append_char(&line.text, '\n');
        if (!line.text.failed && write(r->progress, line.text.data, line.text.size_bytes) < 0)
                r->progress = -1;
        json_line_free(&line);
}

static void hash_state(const struct state *s, const float *parameters, uint8_t *sum)
{
        struct sha256 hash;

        sha256_init(&hash);
        sha256_update(&hash, MAGIC, strlen(MAGIC));
        sha256_update(&hash, s, sizeof(*s));
        sha256_update(&hash, parameters, s->count * sizeof(*parameters));
        sha256_final(&hash, sum);
}

static int write_state(const struct remuda_train *r, const char *path, const float *parameters, size_t count,
                       struct err *err)
{
        struct state s = { .step = r->step, .seed = r->seed, .batch = r->shares.batch, .count = count };
        uint8_t sum[SHA256_BYTES];
        struct whole_file w;

        if (whole_file_open(&w, "the state", path, err) < 0)
                return err->code;
        hash_state(&s, parameters, sum);
        (void) fwrite(MAGIC, strlen(MAGIC), 1, w.f);
        (void) fwrite(&s, sizeof(s), 1, w.f);
        (void) fwrite(parameters, sizeof(float), count, w.f);
        (void) fwrite(sum, sizeof(sum), 1, w.f);
        return whole_file_end(&w, err) < 0 ? err->code : whole_file_rename(&w, err);
}

int remuda_train_save(struct remuda_train *r, const char *path, const float *parameters, size_t count)
{
        struct err err = { 0 };
        int result = r->world.rank == 0 ? write_state(r, path, parameters, count, &err) : 0;

        result = world_agree(&r->world, result, &err);
        return result == 0 ? 0 : r->world.rank == 0 ? complain(&err) : -1;
}

/* Return: 0, 1 = no such file, or a negative errno. */
static int read_state(struct remuda_train *r, const char *path, float *parameters, size_t count,
                      struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        char magic[sizeof(MAGIC)] = "";
        struct state s;
        uint8_t sum[SHA256_BYTES], wanted[SHA256_BYTES];

        if (f == NULL)
                return errno == ENOENT ? 1 : err_set(err, -errno, "file '%s': %m", path);
        if (fread(magic, strlen(MAGIC), 1, f) != 1 || strcmp(magic, MAGIC) != 0 ||
            fread(&s, sizeof(s), 1, f) != 1)
                return err_set(err, -EINVAL, "file '%s' is no saved state, or of another version", path);
        if (s.count != count || s.seed != r->seed || s.batch != r->shares.batch)
                return err_set(err, -EINVAL,
                               "file '%s' is of another run: %llu parameters, batch %llu, seed %llu", path,
                               (unsigned long long) s.count, (unsigned long long) s.batch,
                               (unsigned long long) s.seed);
        if (fread(parameters, sizeof(float), count, f) != count || fread(wanted, sizeof(wanted), 1, f) != 1)
                return err_set(err, -EINVAL, "file '%s' is cut short", path);
        hash_state(&s, parameters, sum);
        if (memcmp(sum, wanted, sizeof(sum)) != 0)
                return err_set(err, -EINVAL, "file '%s' is damaged: its SHA-256 does not match", path);
        r->step = s.step;
        return 0;
}

int remuda_train_load(struct remuda_train *r, const char *path, float *parameters, size_t count)
{
        struct err err = { 0 };
        int result = r->world.rank == 0 ? read_state(r, path, parameters, count, &err) : 0,
            missing = result == 1;
        unsigned long long step = r->step;

        result = world_agree(&r->world, result < 0 ? result : 0, &err);
        if (result < 0)
                return r->world.rank == 0 ? complain(&err) : -1;
        if (r->world.parallel) {
                MPI_Bcast(&missing, 1, MPI_INT, 0, MPI_COMM_WORLD);
                MPI_Bcast(&step, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        }
        r->step = step;
        return remuda_train_broadcast(r, parameters, count * sizeof(*parameters)) == 0 ? missing : -1;
}

void remuda_train_fail(struct remuda_train *r, const char *why)
{
        (void) fprintf(stderr, "remuda-train: rank %d: %s\n", r->world.rank, why);
        world_abort(&r->world, EXIT_FAILURE);
}
