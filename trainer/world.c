/* MPI, where a launcher announced it, and the agreements of all ranks. */
#include "trainer/world.h"

#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/in_step/patience.h"

#define SHARED_BYTES_MAX (1 << 30)

static bool launched_as_rank(void)
{
        static const char *const marks[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "PMI_RANK" };

        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
                if (getenv(marks[i]) != NULL)
                        return true;
        return false;
}

static int local_number(const char *name, int otherwise)
{
        const char *s = getenv(name);
        int64_t n;

        return s != NULL && text_parse_int64(s, &n) == 0 && n >= 0 && n < 1 << 20 ? (int) n : otherwise;
}

int world_open(struct world *w, struct err *err)
{
        int provided;

        *w = (struct world){ .size = 1, .local_size = 1 };
        if (!launched_as_rank())
                return 0;
        w->local_rank = local_number("OMPI_COMM_WORLD_LOCAL_RANK", 0);
        w->local_size = local_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
        /* a rank that waits must not keep the core from one that works, where they share it */
        if (w->local_size > (int) sysconf(_SC_NPROCESSORS_ONLN))
                (void) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
        /* what does not block adds up in halves that both ways of a link carry at once; left to itself Open
         * MPI collects all at one rank, which then sends it back: twice as long between two */
        (void) setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0);
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
                return err_set(err, -EIO, "MPI did not start");
        MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
        MPI_Comm_size(MPI_COMM_WORLD, &w->size);
        w->parallel = true;
        return 0;
}

void world_close(struct world *w)
{
        if (w->parallel) {
                patience_gather(); /* the first one may evaluate the model, or write it, for long */
                MPI_Finalize();
        }
        w->parallel = false;
}

int world_agree(const struct world *w, int result, struct err *err)
{
        int failed = result == 0 ? w->size : w->rank, first;
        struct err sent = { 0 };
        MPI_Request heard;

        if (!w->parallel)
                return result;
        /* what is agreed on may have taken one of them seconds: samples read, operators tuned */
        MPI_Iallreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &heard);
        patience_wait(&heard, 1);
        if (first == w->size)
                return 0;
        if (first == w->rank) {
                sent = *err;
                sent.code = result;
        }
        MPI_Bcast(&sent, (int) sizeof(sent), MPI_BYTE, first, MPI_COMM_WORLD);
        sent.msg[sizeof(sent.msg) - 1] = '\0';
        return w->size > 1 ? err_set(err, sent.code, "rank %d: %s", first, sent.msg)
                           : err_set(err, sent.code, "%s", sent.msg);
}

/* Where the first word begins that is not the same. */
static size_t first_difference(const char *a, const char *b)
{
        size_t word = 0;

        for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
                if (a[i] == ' ')
                        word = i + 1;
        return word;
}

static int word_length(const char *s)
{
        size_t length = strcspn(s, " ");

        return length < 80 ? (int) length : 80;
}

int world_share(const struct world *w, struct text *text, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        unsigned long long count = text->size_bytes;
        int r;

        if (!w->parallel)
                return 0;
        MPI_Bcast(&count, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        bytes = count <= SHARED_BYTES_MAX ? calloc(count + 1, 1) : NULL;
        r = world_agree(
                w,
                bytes != NULL && !text->failed ? 0 : err_set(err, -ENOMEM, "no memory for what rank 0 says"),
                err);
        if (r < 0 || bytes == NULL)
                return r;
        if (w->rank == 0 && count > 0)
                memcpy(bytes, text->data, count);
        MPI_Bcast(bytes, (int) count, MPI_BYTE, 0, MPI_COMM_WORLD);
        text_reset(text);
        text_append_bytes(text, bytes, count);
        return 0;
}

int world_same(const struct world *w, const char *text, const char *what, struct err *err)
{
        CLEANUP(text_free) struct text first = { 0 };
        const char *theirs;
        int result;

        if (!w->parallel)
                return 0;
        text_append_bytes(&first, text, strlen(text) + 1);
        result = world_share(w, &first, err);
        if (result < 0)
                return err_wrap(err, result, "the %s", what);
        theirs = first.data != NULL ? first.data : "";
        if (strcmp(theirs, text) != 0) {
                size_t at = first_difference(theirs, text);

                result =
                        err_set(err, -EINVAL, "its %s differs from rank 0's: here '%.*s', there '%.*s'", what,
                                word_length(text + at), text + at, word_length(theirs + at), theirs + at);
        }
        return world_agree(w, result, err);
}

void world_abort(const struct world *w, int exit_code)
{
        if (w->parallel)
                MPI_Abort(MPI_COMM_WORLD, exit_code);
        _exit(exit_code);
}

size_t world_pin(const struct world *w)
{
        cpu_set_t allowed, own;
        int seen = 0;

        if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return 1;
        /* one rank alone keeps every CPU; ranks that outnumber the CPUs are left to the kernel */
        if (w->local_size < 2 || CPU_COUNT(&allowed) < w->local_size)
                return (size_t) CPU_COUNT(&allowed);
        for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                if (!CPU_ISSET(cpu, &allowed) || seen++ != w->local_rank)
                        continue;
                CPU_ZERO(&own);
                CPU_SET(cpu, &own);
                if (sched_setaffinity(0, sizeof(own), &own) < 0)
                        break;
                return 1;
        }
        return (size_t) CPU_COUNT(&allowed);
}
