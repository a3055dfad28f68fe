/* The file is read when it has changed; the rank that reads tells all. */
#include "trainer/in_step/recut.h"

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool has_changed(const struct stat *a, const struct stat *b)
{
        return a->st_ino != b->st_ino || a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
               a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static int check_servers(const struct live_shares *s, size_t servers, struct err *err)
{
        for (size_t i = 0; i < servers && i < s->count; i++)
                if (s->of[i] > 0)
                        return err_set(err, -EINVAL, "shares[%zu]: rank %zu is a server: 0 is wanted", i, i);
        return 0;
}

static int read_file(struct recut *r, const struct world *w, size_t servers, uint64_t batch, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(r->path, "re");
        CLEANUP(free_p) char *bytes = malloc(LIVE_SHARES_BYTES_MAX + 1);
        struct live_shares s = { 0 };
        int result;

        if (f == NULL || bytes == NULL)
                return err_set(err, -errno, "%m");
        (void) fstat(fileno(f), &r->seen);
        result = live_shares_decode(bytes, fread(bytes, 1, LIVE_SHARES_BYTES_MAX + 1, f), &s, err);
        if (result == 0)
                result = live_shares_check(&s, (size_t) w->size, batch, err);
        if (result == 0)
                result = check_servers(&s, servers, err);
        if (result < 0) {
                live_shares_free(&s);
                return result;
        }
        live_shares_free(&r->read);
        r->read = s;
        r->files++;
        return 0;
}

bool recut_open(struct recut *r, const struct world *w, const char *path)
{
        int own = path != NULL ? w->rank : w->size;

        *r = (struct recut){ .teller = own };
        if (w->parallel) /* a rank that was not told of a file hears of the others' */
                MPI_Allreduce(&own, &r->teller, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (r->teller == w->rank)
                r->path = path;
        return r->teller < w->size;
}

uint64_t recut_look(struct recut *r, const struct world *w, size_t servers, uint64_t batch)
{
        struct stat now;
        struct err err = { 0 };

        if (r->path != NULL && stat(r->path, &now) == 0 && has_changed(&now, &r->seen)) {
                r->seen = now;
                if (read_file(r, w, servers, batch, &err) < 0)
                        (void) fprintf(
                                stderr,
                                "remuda-train: rank %d: REMUDA_SHARES '%s': %s; shares stay as they are\n",
                                w->rank, r->path, err.msg);
        }
        return r->files > r->taken ? r->files : 0;
}

int recut_take(struct recut *r, const struct world *w, uint64_t free_step, struct live_shares *ret,
               struct err *err)
{
        size_t count = (size_t) w->size;
        CLEANUP(free_p) uint32_t *of = calloc(count, sizeof(*of));
        int result = world_agree(w, of != NULL ? 0 : err_set(err, -ENOMEM, "no memory for new shares"), err);
        uint64_t told[] = { r->read.step, r->files };

        if (result < 0 || of == NULL)
                return result;
        if (r->teller == w->rank)
                memcpy(of, r->read.of, count * sizeof(*of));
        MPI_Bcast(told, 2, MPI_UINT64_T, r->teller, MPI_COMM_WORLD);
        MPI_Bcast(of, w->size, MPI_UINT32_T, r->teller, MPI_COMM_WORLD);
        r->taken = told[1];
        *ret = (struct live_shares){ .step = told[0] > free_step ? told[0] : free_step,
                                     .count = count,
                                     .of = TAKE(of) };
        MPI_Allreduce(MPI_IN_PLACE, &ret->step, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        return 0;
}

void recut_close(struct recut *r)
{
        live_shares_free(&r->read);
}
