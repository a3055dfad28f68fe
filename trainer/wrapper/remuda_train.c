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
#include "io/whole_file.h"
#include "trainer/data/sampler.h"
#include "trainer/json_line.h"
#include "trainer/shares.h"
#include "trainer/world.h"

#define MAGIC     "remuda-train-state 1\n"
#define SHARE_MAX (1 << 24) /* samples */

struct remuda_train {
        struct world world;
        struct sampler *sampler;
        struct shares shares;
        uint32_t *ids;
        uint64_t step, last_step, epoch, samples_done;
        size_t count, batch_now; /* of the step begun last */
        uint64_t seed;
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
        struct sampler_rule rule = { .seed = r->seed,
                                     .samples = samples,
                                     .batch = r->shares.batch,
                                     .workers = (size_t) r->world.size,
                                     .shares = r->shares.of };

        if (sampler_new(&rule, &r->sampler, err) < 0 || open_progress(r, err) < 0)
                return err->code;
        r->last_step = epochs * sampler_steps(r->sampler, 0);
        r->ids = calloc(r->shares.batch, sizeof(*r->ids));
        return r->ids != NULL ? 0 : err_set(err, -ENOMEM, "no memory for a batch of %zu", r->shares.batch);
}

static int agree_on_run(struct remuda_train *r, size_t samples, size_t epochs, struct err *err)
{
        char line[256];

        (void) text_format(line, sizeof(line), "wrapper=%d samples=%zu batch=%zu seed=%llu epochs=%zu",
                           REMUDA_TRAIN_VERSION, samples, r->shares.batch, (unsigned long long) r->seed,
                           epochs);
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
        if (world_open(&r->world, &err) < 0) {
                (void) complain(&err);
                free(r);
                return NULL;
        }
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
        (void) atexit(end_world);
        return r;
}

void remuda_train_close(struct remuda_train *r)
{
        if (r == NULL)
                return;
        if (r->owns_progress && r->progress >= 0)
                (void) close(r->progress);
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

long remuda_train_next(struct remuda_train *r, const uint32_t **ret_ids)
{
        size_t epoch_step;
        int count;

        all_done = r->step >= r->last_step;
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
        return count;
}

int remuda_train_reduce(struct remuda_train *r, float *gradient, size_t count)
{
        float weight = (float) remuda_train_weight(r);

        /* a rank without samples has no mean: whatever it computed does not count, not even a NaN */
        for (size_t i = 0; i < count; i++)
                gradient[i] = r->count > 0 ? gradient[i] * weight : 0;
        for (size_t done = 0; r->world.parallel && done < count;) {
                size_t some = count - done < 1 << 28 ? count - done : 1 << 28;

                if (MPI_Allreduce(MPI_IN_PLACE, gradient + done, (int) some, MPI_FLOAT, MPI_SUM,
                                  MPI_COMM_WORLD) != MPI_SUCCESS)
                        return -1;
                done += some;
        }
        return 0;
}

void remuda_train_progress(struct remuda_train *r, double loss)
{
        struct json_line line = { 0 };

        if (r->progress < 0)
                return;
        json_line_open(&line, NULL, '{');
        json_line_uint(&line, "rank", (uint64_t) r->world.rank);
        json_line_uint(&line, "step", r->step > 0 ? r->step - 1 : 0);
        json_line_uint(&line, "epoch", r->epoch);
        json_line_uint(&line, "samples", r->samples_done);
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
                if (!missing)
                        MPI_Bcast(parameters, (int) count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        }
        r->step = step;
        return missing;
}

void remuda_train_fail(struct remuda_train *r, const char *why)
{
        (void) fprintf(stderr, "remuda-train: rank %d: %s\n", r->world.rank, why);
        world_abort(&r->world, EXIT_FAILURE);
}
