/* Who reads what; how new files join at an epoch, and those of an earlier run again. */
#include "trainer/data/distribution.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/joined.h"
#include "trainer/data/part.h"
#include "trainer/training.h"

enum { TAG_HEADER = 100, TAG_NAMES };

struct header {
        uint64_t epoch;
        uint64_t samples; /* of the whole training data from this epoch on */
        uint64_t bytes;   /* of the names that follow */
};

static bool manages(const struct training *t)
{
        return strcmp(t->options->distribute, "manager") == 0;
}

/* Does this rank get samples? Otherwise it is another server or a stage between the first and the last, which
 * is told how many there are. */
static bool takes_samples(const struct training *t, int rank)
{
        return t->shares.pipelines != NULL ? pipelines_takes_samples(t->shares.pipelines, rank)
                                           : shares_computes(&t->shares, rank);
}

/* Does it read the files itself? */
static bool reads_files(const struct training *t, int rank)
{
        return rank == 0 || (!manages(t) && takes_samples(t, rank));
}

struct facts {
        uint64_t train, test, height, width, channels, classes;
        float value[256];
};

static void describe(const struct dataset *d, struct facts *f)
{
        *f = (struct facts){ dataset_count(d, DATASET_TRAIN),
                             dataset_count(d, DATASET_TEST),
                             d->size.input.height,
                             d->size.input.width,
                             d->size.input.channels,
                             d->size.classes,
                             { 0 } };
        memcpy(f->value, d->value, sizeof(f->value));
}

/* A data set whose samples are elsewhere until they come. */
static struct dataset *remote(const struct facts *f, const struct preprocess_steps *p, uint64_t seed,
                              bool text)
{
        struct dataset *d = calloc(1, sizeof(*d));

        if (d == NULL)
                return NULL;
        d->preprocess = *p;
        d->seed = seed;
        d->text = text;
        d->splits[DATASET_TRAIN].count = f->train;
        d->splits[DATASET_TEST].count = f->test;
        d->size = (struct model_size){ { f->height, f->width, f->channels }, f->classes };
        memcpy(d->value, f->value, sizeof(d->value));
        return d;
}

void distribution_close(struct distribution *d)
{
        text_free(&d->joined);
        seen_free(&d->later);
}

int distribution_open(struct training *t, const struct preprocess_steps *p, struct err *err)
{
        const struct train_options *o = t->options;
        struct facts facts = { 0 };
        int r = 0;

        if (t->world.rank == 0) {
                r = dataset_open(o->data, strcmp(o->model, "text") == 0, p, o->seed, &t->distribution.later,
                                 &t->data, err);
                if (r == 0)
                        describe(t->data, &facts);
        }
        r = world_agree(&t->world, r, err);
        if (r < 0 || !t->world.parallel)
                return r;
        MPI_Bcast(&facts, (int) sizeof(facts), MPI_BYTE, 0, MPI_COMM_WORLD);
        if (t->world.rank > 0)
                t->data = remote(&facts, p, o->seed, strcmp(o->model, "text") == 0);
        r = t->data != NULL ? 0 : err_set(err, -ENOMEM, "no memory for the data set");
        return world_agree(&t->world, r, err);
}

/* Tells a rank which epoch begins, with how many samples, and the names of the files that join. */
static void hand_over(uint64_t epoch, int rank, uint64_t samples, const char *names)
{
        struct header h = { epoch, samples, strlen(names) };

        MPI_Send(&h, (int) sizeof(h), MPI_BYTE, rank, TAG_HEADER, MPI_COMM_WORLD);
        MPI_Send(names, (int) h.bytes, MPI_BYTE, rank, TAG_NAMES, MPI_COMM_WORLD);
}

/* The training data have `samples` from this epoch on; before, they had `before`. */
static void note_growth(struct training *t, uint64_t epoch, uint64_t before, uint64_t samples,
                        struct err *err)
{
        if (samples == before)
                return;
        t->data->splits[DATASET_TRAIN].count = samples;
        if (sampler_grow(t->sampler, epoch, samples, err) < 0 || t->options->steps > 0)
                return;
        t->last_step = 0;
        for (uint64_t e = 0; e < t->options->epochs; e++)
                t->last_step += sampler_steps(t->sampler, e);
}

/* What the manager tells this rank. @ret_names: allocated, with a 0 behind them */
static int take_over(uint64_t epoch, struct header *ret, char **ret_names, struct err *err)
{
        CLEANUP(free_p) char *names = NULL;
        struct header h = { 0 };

        MPI_Recv(&h, (int) sizeof(h), MPI_BYTE, 0, TAG_HEADER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        names = h.bytes < INT_MAX ? malloc(h.bytes + 1) : NULL;
        if (names == NULL)
                return err_set(err, -ENOMEM, "no memory for %llu bytes of names",
                               (unsigned long long) h.bytes);
        if (h.epoch != epoch)
                return err_set(err, -EIO, "the manager begins epoch %llu, epoch %llu is due",
                               (unsigned long long) h.epoch, (unsigned long long) epoch);
        MPI_Recv(names, (int) h.bytes, MPI_BYTE, 0, TAG_NAMES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        names[h.bytes] = '\0';
        *ret = h;
        *ret_names = TAKE(names);
        return 0;
}

/* Where every rank reads the data itself: the names of the files that join. */
static int receive_names(struct training *t, uint64_t epoch, struct err *err)
{
        CLEANUP(free_p) char *names = NULL;
        uint64_t before = dataset_count(t->data, DATASET_TRAIN);
        struct header h = { 0 };
        char *rest, *name;

        if (take_over(epoch, &h, &names, err) < 0)
                return err->code;
        rest = names;
        while ((name = strsep(&rest, "\n")) != NULL)
                if (name[0] != '\0' && dataset_join(t->data, t->options->data, name, err) < 0)
                        return err->code;
        if (dataset_count(t->data, DATASET_TRAIN) != h.samples)
                return err_set(err, -EINVAL,
                               "--poll: %zu samples here, %llu on rank 0: is it the same directory?",
                               dataset_count(t->data, DATASET_TRAIN), (unsigned long long) h.samples);
        note_growth(t, epoch, before, h.samples, err);
        return 0;
}

/* A rank without files. */
static int receive_count(struct training *t, uint64_t epoch, struct err *err)
{
        CLEANUP(free_p) char *names = NULL;
        struct header h = { 0 };

        if (take_over(epoch, &h, &names, err) < 0)
                return err->code;
        note_growth(t, epoch, dataset_count(t->data, DATASET_TRAIN), h.samples, err);
        return t->data->places != NULL ? part_number(t->data, err) : 0;
}

int distribution_remember(struct training *t, struct err *err)
{
        const struct train_options *o = t->options;
        struct joined_line line;
        const char *at;
        int r = 0;

        if (o->checkpoint == NULL || !o->resume)
                return 0;
        if (t->world.rank == 0)
                r = joined_read(o->checkpoint, &t->distribution.joined, err);
        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        r = world_share(&t->world, &t->distribution.joined, err);
        if (r < 0)
                return r;
        at = t->distribution.joined.data;
        while (at != NULL && r == 0 && joined_next(&at, &line))
                r = seen_add(&t->distribution.later, line.name);
        return world_agree(&t->world, r < 0 ? err_set(err, r, "no memory for the files' names") : 0, err);
}

/* The file of one line, and of the lines after it that joined with it. */
static int join_again(struct training *t, const char **at, struct joined_line line, struct err *err)
{
        bool reads = reads_files(t, t->world.rank);
        uint64_t before = dataset_count(t->data, DATASET_TRAIN);
        struct joined_line more = line;
        const char *next = *at;
        int r = 0;

        do {
                *at = next;
                if (reads)
                        r = dataset_join(t->data, t->options->data, more.name, err);
                if (r == 0 && t->world.rank == 0 && seen_add(&t->data->seen, more.name) < 0)
                        r = err_set(err, -ENOMEM, "no memory for the files' names");
        } while (r == 0 && joined_next(&next, &more) && more.epoch == line.epoch);
        if (r < 0)
                return err_wrap(err, r == -ENOMEM ? r : -EINVAL,
                                "--resume: file '%s', which joined at epoch %llu, cannot be read again",
                                more.name, (unsigned long long) line.epoch);
        if (reads && dataset_count(t->data, DATASET_TRAIN) != line.samples)
                return err_set(err, -EINVAL,
                               "--resume: %zu samples with the files that joined by epoch %llu, there were "
                               "%llu: files have changed",
                               dataset_count(t->data, DATASET_TRAIN), (unsigned long long) line.epoch,
                               (unsigned long long) line.samples);
        note_growth(t, line.epoch, before, line.samples, err);
        return 0;
}

int distribution_resume(struct training *t, struct err *err)
{
        const char *at = t->distribution.joined.data;
        size_t bytes = t->distribution.joined.size_bytes;
        struct joined_line line;
        int r = 0;

        for (const char *next = at; r == 0 && at != NULL && joined_next(&next, &line);) {
                uint64_t first = 0;

                for (uint64_t e = 0; e < line.epoch && first < t->step; e++)
                        first += sampler_steps(t->sampler, e);
                if (first >= t->step) /* after the checkpoint: the file is found anew */
                        break;
                r = join_again(t, &next, line, err);
                at = next;
        }
        if (r < 0 || bytes == 0)
                return r;
        assert(at != NULL);
        t->distribution.joined.size_bytes = (size_t) (at - t->distribution.joined.data);
        t->distribution.joined.data[t->distribution.joined.size_bytes] = '\0';
        /* the list on disk keeps them until they join again: a run that is killed before must know them, too
         */
        if (t->world.rank == 0 && t->distribution.joined.size_bytes < bytes && t->options->poll == 0)
                (void) fprintf(stderr, "remuda-train: files that joined after this checkpoint are left out: "
                                       "--poll would look for them\n");
        return 0;
}

/* @names: of the files that join now, one a line */
static int remember(struct training *t, uint64_t epoch, const struct text *names, struct err *err)
{
        const char *at = names->data;

        if (t->options->checkpoint == NULL)
                return 0;
        for (size_t length; at != NULL && (length = strcspn(at, "\n")) > 0; at += length + 1)
                text_printf(&t->distribution.joined, "%llu %zu %.*s\n", (unsigned long long) epoch,
                            dataset_count(t->data, DATASET_TRAIN), (int) length, at);
        return joined_write(t->options->checkpoint, &t->distribution.joined, err);
}

/* @joined: gets the new files' names */
static int look_for_files(struct training *t, uint64_t epoch, struct text *joined, struct err *err)
{
        uint64_t now = record_now();
        size_t before = dataset_count(t->data, DATASET_TRAIN), added;

        if (t->options->poll == 0 || (epoch == 0 && t->step == 0) ||
            now - t->distribution.polled_usec < (uint64_t) t->options->poll * 1000000)
                return 0;
        t->distribution.polled_usec = now;
        added = dataset_poll(t->data, t->options->data, joined);
        if (added == 0)
                return 0;
        note_growth(t, epoch, before, before + added, err);
        (void) fprintf(stderr, "remuda-train: %zu samples of new files join at epoch %llu\n", added,
                       (unsigned long long) epoch);
        return remember(t, epoch, joined, err);
}

bool distribution_known(const struct training *t, uint64_t step)
{
        uint64_t epoch;
        size_t epoch_step;

        if (t->options->poll == 0)
                return true;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        return t->distribution.epochs_begun > epoch;
}

bool distribution_begun(const struct training *t, uint64_t step)
{
        return distribution_known(t, step) && stream_has(t, step);
}

static int tell_all(struct training *t, uint64_t epoch, const struct text *joined, struct err *err)
{
        const char *names = joined->data != NULL ? joined->data : "";

        if (joined->failed)
                return err_set(err, -ENOMEM, "no memory for the new files' names");
        for (int rank = 1; rank < t->world.size; rank++)
                hand_over(epoch, rank, dataset_count(t->data, DATASET_TRAIN),
                          reads_files(t, rank) ? names : "");
        return 0;
}

/* With --poll: an epoch begins on all ranks, with the files that were found. */
static int begin_epoch(struct training *t, uint64_t step, struct err *err)
{
        CLEANUP(text_free) struct text joined = { 0 };
        uint64_t epoch;
        size_t epoch_step;
        int r = 0;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        if (t->world.rank > 0) {
                r = reads_files(t, t->world.rank) ? receive_names(t, epoch, err)
                                                  : receive_count(t, epoch, err);
        } else {
                /* within an epoch the order of its samples stays */
                if (epoch_step == 0)
                        r = look_for_files(t, epoch, &joined, err);
                r = r < 0 ? r : tell_all(t, epoch, &joined, err);
        }
        t->distribution.epochs_begun = epoch + 1;
        return r;
}

int distribution_step(struct training *t, uint64_t step, struct err *err)
{
        int r = 0;

        if (step >= t->last_step)
                return 0;
        if (!distribution_known(t, step))
                r = begin_epoch(t, step, err);
        if (r == 0)
                r = stream_serve(t, step, err);
        return r < 0 ? r : stream_wait(t, step, err);
}
