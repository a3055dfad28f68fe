/* Counters that only rise, in memory of all members; a futex for who sleeps. */
#include "trainer/strategies/group_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define LINE_BYTES 64

/* Of one place: how many members have done it, over all pieces that lay there. M to each piece. */
struct place {
        _Alignas(LINE_BYTES) _Atomic uint64_t offered;
        _Alignas(LINE_BYTES) _Atomic uint64_t added;
        _Alignas(LINE_BYTES) _Atomic uint64_t whole; /* of the leader alone: one to each piece */
        _Alignas(LINE_BYTES) _Atomic uint64_t taken;
};

struct group_memory_shared {
        uint64_t mark[2]; /* whose it is */
        struct place places[GROUP_MEMORY_DEPTH];
        _Alignas(LINE_BYTES) _Atomic uint32_t changes;
        _Atomic uint32_t sleepers;
        _Alignas(LINE_BYTES) float values[]; /* a piece of each member, for each place */
};

size_t group_memory_size_bytes(size_t members, size_t piece)
{
        return sizeof(struct group_memory_shared) + members * GROUP_MEMORY_DEPTH * piece * sizeof(float);
}

void group_memory_use(struct group_memory *g, void *shared, size_t members, size_t member, size_t piece)
{
        *g = (struct group_memory){ .shared = shared, .members = members, .member = member, .piece = piece };
}

/* What the leader tells its members: where its memory is, and how they know that it is the same. */
struct whereabouts {
        int64_t pid, fd;
        uint64_t mark[2];
};

/* A file without a name, with all of its memory: nothing is left behind, and where there is no room it is
 * said here and not by a signal later. Return: a descriptor, or -1. */
static int make_file(size_t size_bytes)
{
        int fd = memfd_create("remuda-group", MFD_CLOEXEC);

        if (fd >= 0 && posix_fallocate(fd, 0, (off_t) size_bytes) != 0) {
                (void) close(fd);
                fd = -1;
        }
        return fd;
}

/* In another PID namespace it may be another process, and another file: looked at before it is opened. */
static int open_file(const struct whereabouts *at, size_t size_bytes)
{
        char path[64];
        struct stat st;

        if (at->pid <= 0 ||
            !text_format(path, sizeof(path), "/proc/%lld/fd/%lld", (long long) at->pid, (long long) at->fd) ||
            stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t) size_bytes)
                return -1;
        return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static struct group_memory_shared *map_file(int fd, size_t size_bytes)
{
        void *memory =
                fd < 0 ? MAP_FAILED : mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

/* Collective in @members, who are on one host. Return: the memory, or NULL: all of them have it, or none. */
static struct group_memory_shared *share(MPI_Comm members, bool leader, size_t size_bytes)
{
        CLEANUP(close_p) int fd = leader ? make_file(size_bytes) : -1;
        struct group_memory_shared *shared = map_file(fd, size_bytes);
        struct whereabouts at = { .pid = shared != NULL ? getpid() : 0, .fd = fd };
        int all;

        if (shared != NULL && getrandom(at.mark, sizeof(at.mark), 0) == (ssize_t) sizeof(at.mark))
                memcpy(shared->mark, at.mark, sizeof(at.mark));
        MPI_Bcast(&at, (int) sizeof(at), MPI_BYTE, 0, members);
        if (!leader) {
                fd = open_file(&at, size_bytes);
                shared = map_file(fd, size_bytes);
        }
        all = shared != NULL && memcmp(shared->mark, at.mark, sizeof(at.mark)) == 0;
        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, members); /* until then the descriptor stays */
        if (!all && shared != NULL)
                (void) munmap(shared, size_bytes);
        return all ? shared : NULL;
}

/* Are all of @members on one host? The same answer for all of them. */
static bool all_on_host(MPI_Comm members, int member, int count)
{
        MPI_Comm host;
        int on_host;

        MPI_Comm_split_type(members, MPI_COMM_TYPE_SHARED, member, MPI_INFO_NULL, &host);
        MPI_Comm_size(host, &on_host);
        MPI_Comm_free(&host);
        MPI_Allreduce(MPI_IN_PLACE, &on_host, 1, MPI_INT, MPI_MIN, members);
        return on_host == count;
}

bool group_memory_open(struct group_memory *g, MPI_Comm members, size_t piece)
{
        int count, member;

        MPI_Comm_rank(members, &member);
        MPI_Comm_size(members, &count);
        group_memory_use(g, NULL, (size_t) count, (size_t) member, piece);
        g->size_bytes = group_memory_size_bytes((size_t) count, piece);
        if (all_on_host(members, member, count))
                g->shared = share(members, member == 0, g->size_bytes);
        return g->shared != NULL;
}

void group_memory_close(struct group_memory *g)
{
        if (g->shared != NULL && g->size_bytes > 0)
                (void) munmap(g->shared, g->size_bytes);
        *g = (struct group_memory){ 0 };
}

static struct place *place_of(struct group_memory *g, uint64_t piece)
{
        return &g->shared->places[piece % GROUP_MEMORY_DEPTH];
}

static float *values_of(struct group_memory *g, uint64_t piece, size_t member)
{
        return g->shared->values + (piece % GROUP_MEMORY_DEPTH * g->members + member) * g->piece;
}

/* The counter of M members, once all have done it for a piece and for those that lay there before. */
static uint64_t all_of(const struct group_memory *g, uint64_t piece)
{
        return (piece / GROUP_MEMORY_DEPTH + 1) * g->members;
}

/* Whoever sleeps looks again. The change is there before who is about to sleep is counted or after: then its
 * futex finds the change. */
static void tell(struct group_memory *g)
{
        atomic_fetch_add(&g->shared->changes, 1);
        if (atomic_load(&g->shared->sleepers) > 0)
                (void) syscall(SYS_futex, &g->shared->changes, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The last one of them tells. */
static void count_up(struct group_memory *g, _Atomic uint64_t *counter, uint64_t piece)
{
        if (atomic_fetch_add(counter, 1) + 1 == all_of(g, piece))
                tell(g);
}

bool group_memory_offer(struct group_memory *g, uint64_t piece, const float *values, size_t count)
{
        struct place *p = place_of(g, piece);

        if (g->member == 0 && atomic_load(&p->taken) < all_of(g, piece) - g->members)
                return false;
        memcpy(values_of(g, piece, g->member), values, count * sizeof(*values));
        count_up(g, &p->offered, piece);
        return true;
}

/* Part m of a piece: floats from here on. */
static size_t part_begin(const struct group_memory *g, size_t count, size_t member)
{
        return count * member / g->members;
}

/* The members of one group have done so, each one its part; of member 0's place, where the sum will be. */
static void add_part(struct group_memory *g, const struct backend *b, uint64_t piece, size_t count)
{
        size_t begin = part_begin(g, count, g->member), size = part_begin(g, count, g->member + 1) - begin;
        float *sum = values_of(g, piece, 0) + begin;

        for (size_t i = 1; i < g->members; i++)
                backend_add(b, size, values_of(g, piece, i) + begin, sum);
}

bool group_memory_add(struct group_memory *g, const struct backend *b, uint64_t piece, size_t count)
{
        struct place *p = place_of(g, piece);

        if (piece == g->unadded) {
                if (atomic_load(&p->offered) < all_of(g, piece))
                        return false;
                add_part(g, b, piece, count);
                g->unadded++;
                count_up(g, &p->added, piece);
        }
        return piece < g->unadded && (g->member != 0 || atomic_load(&p->added) >= all_of(g, piece));
}

float *group_memory_sum(struct group_memory *g, uint64_t piece)
{
        return values_of(g, piece, 0);
}

void group_memory_whole(struct group_memory *g, uint64_t piece)
{
        atomic_fetch_add(&place_of(g, piece)->whole, 1);
        tell(g);
}

bool group_memory_take(struct group_memory *g, uint64_t piece, float *values, size_t count)
{
        struct place *p = place_of(g, piece);

        if (atomic_load(&p->whole) <= piece / GROUP_MEMORY_DEPTH)
                return false;
        memcpy(values, group_memory_sum(g, piece), count * sizeof(*values));
        count_up(g, &p->taken, piece);
        return true;
}

void group_memory_look(struct group_memory *g)
{
        g->seen = atomic_load(&g->shared->changes);
}

void group_memory_sleep(struct group_memory *g, uint64_t most_usec)
{
        const struct timespec most = { .tv_sec = (time_t) (most_usec / 1000000),
                                       .tv_nsec = (long) (most_usec % 1000000) * 1000 };

        atomic_fetch_add(&g->shared->sleepers, 1);
        (void) syscall(SYS_futex, &g->shared->changes, FUTEX_WAIT, g->seen, &most, NULL, 0);
        atomic_fetch_sub(&g->shared->sleepers, 1);
}
