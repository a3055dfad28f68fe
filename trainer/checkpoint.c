/* A checkpoint is written beside and renamed, the newest whole one is found again; rank 0 does it for all. */
#include "trainer/checkpoint.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "base/text.h"
#include "io/whole_file.h"
#include "trainer/checkpoint_file.h"
#include "trainer/weights.h"

#define KEPT        2
#define FILES_MAX   4096
#define TAG_SPREAD  210
#define NAME_FORMAT "step-%012llu.checkpoint"

struct writing {
        FILE *f;
        struct sha256 hash;
};

static void put_bytes(struct writing *c, const void *bytes, size_t count)
{
        sha256_update(&c->hash, bytes, count);
        (void) fwrite(bytes, 1, count, c->f); /* ferror() tells later */
}

static void put_values(void *context, const float *values, size_t count)
{
        put_bytes(context, values, count * sizeof(*values));
}

static void stream_values(const struct training *t, struct writing *c)
{
        weights_stream(t, t->parameters, put_values, c);
        if (t->velocity != NULL)
                weights_stream(t, t->velocity, put_values, c);
}

/* Names how the shards were dealt that workers keep. Which sample is where follows from that and the step;
 * dealt otherwise, samples of an epoch would be used twice and others never. 0 = workers keep none. */
static uint64_t shards_of(const struct training *t)
{
        const struct train_options *o = t->options;
        uint64_t order = (uint64_t) (strcmp(o->order, "blocks") == 0) * 2 + o->as_it_lies, hash;

        if (!train_options_owned(o))
                return 0;
        hash = hash_bytes(&o->exchange, sizeof(o->exchange), order);
        return hash_bytes(t->shares.of, t->shares.workers * sizeof(*t->shares.of), hash) | 1;
}

/* @dealt: empty where workers keep no shards */
static void write_all(FILE *f, const struct training *t, uint64_t step, const struct text *dealt)
{
        struct writing c = { .f = f };
        uint8_t sum[SHA256_BYTES];
        char header[CHECKPOINT_FILE_HEADER_MAX], shards[64] = "";

        if (dealt->size_bytes > 0)
                (void) text_format(shards, sizeof(shards), " shards=%llx dealt=%zu",
                                   (unsigned long long) shards_of(t), dealt->size_bytes);
        (void) text_format(header, sizeof(header),
                           "remuda-checkpoint version=%d model=%llx step=%llu seed=%zu batch=%zu "
                           "parameters=%zu velocity=%d%s\n",
                           CHECKPOINT_FILE_VERSION, (unsigned long long) model_hash(&t->model),
                           (unsigned long long) step, t->options->seed, t->shares.batch,
                           t->model.parameter_count, t->velocity != NULL, shards);
        sha256_init(&c.hash);
        put_bytes(&c, header, strlen(header));
        if (dealt->size_bytes > 0)
                put_bytes(&c, dealt->data, dealt->size_bytes);
        stream_values(t, &c);
        sha256_final(&c.hash, sum);
        (void) fwrite(sum, 1, sizeof(sum), f);
}

/* Numbers of the checkpoints in DIR, newest first. Return: how many, at most FILES_MAX. */
static int compare_falling(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? 1 : x > y ? -1 : 0;
}

static size_t list_steps(const char *directory, uint64_t *steps)
{
        DIR *d = opendir(directory);
        const struct dirent *entry;
        size_t count = 0;

        while (d != NULL && count < FILES_MAX && (entry = readdir(d)) != NULL) {
                char digits[32];
                size_t length = strspn(entry->d_name + (text_starts_with(entry->d_name, "step-") ? 5 : 0),
                                       "0123456789");

                if (!text_starts_with(entry->d_name, "step-") || length == 0 || length >= sizeof(digits) ||
                    strcmp(entry->d_name + 5 + length, ".checkpoint") != 0)
                        continue;
                memcpy(digits, entry->d_name + 5, length);
                digits[length] = '\0';
                if (text_parse_uint64(digits, &steps[count]) == 0)
                        count++;
        }
        if (d != NULL)
                (void) closedir(d);
        qsort(steps, count, sizeof(*steps), compare_falling);
        return count;
}

static bool path_of(char *path, size_t path_bytes, const char *directory, uint64_t step, const char *end)
{
        return text_format(path, path_bytes, "%s/" NAME_FORMAT "%s", directory, (unsigned long long) step,
                           end);
}

static void remove_old(const char *directory, uint64_t newest)
{
        CLEANUP(free_p) uint64_t *steps = calloc(FILES_MAX, sizeof(*steps));
        size_t count = steps != NULL ? list_steps(directory, steps) : 0, kept = 0;
        char path[4096];

        for (size_t i = 0; i < count; i++)
                if (steps[i] <= newest && ++kept > KEPT &&
                    path_of(path, sizeof(path), directory, steps[i], ""))
                        (void) unlink(path);
}

/* A run that begins anew in the directory of another: what is ahead of it is not its own, and --resume must
 * not take it for that. It is kept under another name. */
static void put_aside(const struct training *t, uint64_t newest)
{
        const char *directory = t->options->checkpoint;
        CLEANUP(free_p) uint64_t *steps = calloc(FILES_MAX, sizeof(*steps));
        size_t count = steps != NULL ? list_steps(directory, steps) : 0;
        char path[4096], aside[4096];

        if (t->distribution.joined.size_bytes == 0 &&
            text_format(path, sizeof(path), "%s/joined", directory) &&
            text_format(aside, sizeof(aside), "%s/joined.before", directory))
                (void) rename(path, aside);
        for (size_t i = 0; i < count && steps[i] > newest; i++)
                if (path_of(path, sizeof(path), directory, steps[i], "") &&
                    path_of(aside, sizeof(aside), directory, steps[i], ".before"))
                        (void) rename(path, aside);
}

int checkpoint_write(const struct training *t, uint64_t step, struct err *err)
{
        const char *directory = t->options->checkpoint;
        CLEANUP(text_free) struct text dealt = { 0 };
        struct whole_file w;
        char path[4096];
        int fd;

        if (t->world.rank > 0) { /* a stage of a split model: rank 0 writes */
                stream_values(t, NULL);
                return 0;
        }
        if (!path_of(path, sizeof(path), directory, step, ""))
                return err_set(err, -EINVAL, "--checkpoint: the directory's name is too long");
        if (mkdir(directory, 0777) < 0 && errno != EEXIST)
                return err_set(err, -errno, "--checkpoint: directory '%s': %m", directory);
        dealings_print(&t->dealings, &dealt);
        if (dealt.failed)
                return err_set(err, -ENOMEM, "no memory for a checkpoint");
        if (whole_file_open(&w, "--checkpoint", path, err) < 0)
                return err->code;
        write_all(w.f, t, step, &dealt);
        if (whole_file_end(&w, err) < 0)
                return err->code;
        if (!t->options->resume)
                put_aside(t, step);
        if (whole_file_rename(&w, err) < 0)
                return err->code;
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
                (void) fsync(fd);
                (void) close(fd);
        }
        remove_old(directory, step);
        return 0;
}

struct mapped { /* a whole file; what is not looked at needs no memory */
        unsigned char *bytes;
        size_t size_bytes;
};

static void unmap(struct mapped *m)
{
        if (m->bytes != NULL)
                (void) munmap(m->bytes, m->size_bytes);
        m->bytes = NULL;
}

static int map_whole(const char *path, struct mapped *ret, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        struct stat facts;
        void *bytes;

        if (f == NULL || fstat(fileno(f), &facts) < 0)
                return err_set(err, -errno, "%m");
        if (facts.st_size == 0)
                return err_set(err, -EINVAL, "empty: half written");
        bytes = mmap(NULL, (size_t) facts.st_size, PROT_READ, MAP_PRIVATE, fileno(f), 0);
        if (bytes == MAP_FAILED)
                return err_set(err, -errno, "not read: %m");
        *ret = (struct mapped){ bytes, (size_t) facts.st_size };
        return 0;
}

/* Does this checkpoint continue this run? */
static int check_facts(const struct training *t, const struct checkpoint_file_facts *f, struct err *err)
{
        if (f->parameters == t->model.parameter_count && f->model != model_hash(&t->model))
                return err_set(
                        err, -EPROTO,
                        "it is of another model: of as many parameters as %s here, but other operators; "
                        "was it made with another --model or --activation?",
                        t->model.name);
        if (f->parameters != t->model.parameter_count)
                return err_set(err, -EPROTO, "it is of another model (%zu parameters, %s here has %zu)",
                               f->parameters, t->model.name, t->model.parameter_count);
        if (f->seed != t->options->seed || f->batch != t->shares.batch)
                return err_set(err, -EPROTO,
                               "it is of a run with --seed %llu --batch %zu, this one has %zu and %zu",
                               (unsigned long long) f->seed, f->batch, t->options->seed, t->shares.batch);
        if (f->velocity != (t->velocity != NULL))
                return err_set(err, -EPROTO, "it is of a run with --optimiser %s",
                               f->velocity ? "momentum" : "sgd");
        if ((f->shards == 0) != (shards_of(t) == 0))
                return err_set(err, -EPROTO,
                               f->shards == 0
                                       ? "it is of a run whose workers kept no shards: leave out "
                                         "--neighbour-exchange and --distribute once"
                                       : "it is of a run whose workers kept shards: go on with --distribute "
                                         "once, or with --neighbour-exchange");
        if (f->dealt_bytes == 0 && f->shards != shards_of(t))
                return err_set(
                        err, -EPROTO,
                        "it is of a run whose workers kept shards, and does not say how they were dealt "
                        "(it was written by an earlier release): go on with its --shares, --order, "
                        "--no-shuffle, --neighbour-exchange and number of workers");
        return 0;
}

/* Return: 0; -EPROTO: whole, but of another run; another negative errno: not usable. */
static int read_one(const struct training *t, const char *path, struct checkpoint_file_facts *facts,
                    const unsigned char **ret_values, struct mapped *ret, struct err *err)
{
        struct mapped m = { 0 };
        int r = map_whole(path, &m, err);

        if (r == 0)
                r = checkpoint_file_parse(m.bytes, m.size_bytes, facts, ret_values, err);
        if (r == 0)
                r = check_facts(t, facts, err);
        if (r == 0)
                *ret = m;
        else
                unmap(&m);
        return r < 0 ? err_wrap(err, r, "checkpoint '%s'", path) : 0;
}

/* Rank 0 finds the newest whole one. Return: 0, with no bytes when there is none yet. */
static int read_newest(const struct training *t, struct checkpoint_file_facts *facts,
                       const unsigned char **ret_values, struct mapped *ret, struct err *err)
{
        CLEANUP(free_p) uint64_t *steps = calloc(FILES_MAX, sizeof(*steps));
        const char *directory = t->options->checkpoint;
        size_t count;
        char path[4096];
        int r = 0;

        assert(directory != NULL); /* --resume wants it */
        count = steps != NULL ? list_steps(directory, steps) : 0;
        for (size_t i = 0; i < count; i++) {
                if (!path_of(path, sizeof(path), directory, steps[i], ""))
                        return err_set(err, -EINVAL, "--checkpoint: the directory's name is too long");
                r = read_one(t, path, facts, ret_values, ret, err);
                if (r == 0 || r == -EPROTO)
                        return r == 0 ? 0 : err_wrap(err, -EINVAL, "--resume");
                if (i + 1 < count)
                        (void) fprintf(stderr, "remuda-train: %s; trying the one before\n", err->msg);
        }
        return r == 0 ? 0 : err_wrap(err, -EINVAL, "--resume");
}

/* Rank 0 has all values in the file's bytes, every rank gets those of its part. */
static void spread(const struct training *t, const unsigned char *values, float *own)
{
        assert(t->world.rank > 0 || values != NULL);
        if (t->world.rank == 0)
                memcpy(own, values + t->part.from * sizeof(*own), t->part.count * sizeof(*own));
        if (t->stages == NULL && t->world.parallel)
                MPI_Bcast(own, (int) t->part.count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        for (int rank = 1; t->stages != NULL && t->world.rank == 0 && rank < t->world.size; rank++)
                MPI_Send(values + t->stages[rank].from * sizeof(*own),
                         (int) (t->stages[rank].count * sizeof(*own)), MPI_BYTE, rank, TAG_SPREAD,
                         MPI_COMM_WORLD);
        if (t->stages != NULL && t->world.rank > 0)
                MPI_Recv(own, (int) (t->part.count * sizeof(*own)), MPI_BYTE, 0, TAG_SPREAD, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

/* Every rank learns how samples were dealt before; what is in force from this step on comes on top.
 * Collective. */
static int resume_dealings(struct training *t, const struct checkpoint_file_facts *f, struct err *err)
{
        unsigned long long size = f->dealt_bytes;
        CLEANUP(free_p) char *text = NULL;
        struct dealings before = { 0 };
        struct dealing own;
        int r;

        if (t->dealings.count == 0) /* the same on every rank */
                return 0;
        if (t->world.parallel)
                MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        text = calloc(size + 1, 1);
        r = world_agree(&t->world, text != NULL ? 0 : err_set(err, -ENOMEM, "no memory for a checkpoint"),
                        err);
        if (r < 0 || text == NULL || size == 0)
                return r;
        if (f->dealt != NULL) /* rank 0 */
                memcpy(text, f->dealt, size);
        if (t->world.parallel)
                MPI_Bcast(text, (int) size, MPI_CHAR, 0, MPI_COMM_WORLD);
        own = t->dealings.list[t->dealings.count - 1];
        own.from = t->step;
        r = dealings_parse(text, t->shares.batch, &before, err);
        if (r == 0)
                r = dealings_add(&before, &own, err);
        dealings_free(r == 0 ? &t->dealings : &before);
        if (r == 0) {
                t->dealings = before;
                sampler_dealt(t->sampler, &t->dealings);
        }
        return world_agree(&t->world, r < 0 ? err_wrap(err, r, "--resume") : 0, err);
}

int checkpoint_resume(struct training *t, struct err *err)
{
        struct checkpoint_file_facts facts = { 0 };
        const unsigned char *values = NULL;
        struct mapped file = { 0 };
        unsigned long long found[2]; /* is there one, its step */
        int r = t->options->checkpoint == NULL ? err_set(err, -EINVAL, "--resume wants --checkpoint DIR") : 0;

        if (r == 0 && t->world.rank == 0)
                r = read_newest(t, &facts, &values, &file, err);
        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        found[0] = file.bytes != NULL;
        found[1] = facts.step;
        if (t->world.parallel)
                MPI_Bcast(found, 2, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        if (found[0] != 0) {
                spread(t, values, t->parameters);
                if (t->velocity != NULL)
                        spread(t, values != NULL ? values + facts.parameters * sizeof(float) : NULL,
                               t->velocity);
                t->step = found[1];
                r = resume_dealings(t, &facts, err);
        }
        unmap(&file);
        return r;
}
