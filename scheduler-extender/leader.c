/* Which of several replicas may commit. All read; binds, gang leases, evictions and labels are the leader's.
 *
 * kubernetes: by a Lease (store/lease.h). dir: by a lock on a file in the directory, which the kernel gives
 * up with the process. In both cases whoever begins to lead first reads the store anew: what the one before
 * committed must be in the ledger before the next commit. */
#include "scheduler-extender/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "scheduler-extender/extender_internal.h"
#include "store/lease.h"

#define LEASE_NAME "remuda-extender"
#define LOCK_NAME  ".remuda-extender.lock"
#define LOCK_USEC  500000u

#define COMMIT_SLACK_USEC 200000u

struct leader {
        struct extender *extender;
        struct lease *lease; /* kubernetes */
        int directory_fd;    /* dir */
        int lock_fd;         /* held while >= 0 */
        sd_event_source *again;
        bool elected;    /* as last seen */
        bool read_since; /* the store's very first reading began after we were elected */
        bool fresh;      /* the store was read since then */
        bool told;       /* what the others were told last */
        bool complained;
};

static bool is_elected(const struct leader *l)
{
        return l->lease != NULL ? lease_leading(l->lease) : l->lock_fd >= 0;
}

bool leader_leads(const struct extender *x)
{
        if (x->leader == NULL)
                return true; /* alone by order */
        return x->leader->fresh && is_elected(x->leader);
}

static const char *holder_of(const struct extender *x)
{
        return x->leader != NULL && x->leader->lease != NULL ? lease_holder(x->leader->lease) : "";
}

const char *leader_refuses(struct extender *x)
{
        static const char retry[] = "ask again";
        const char *holder = holder_of(x);

        if (leader_leads(x))
                return NULL;
        if (x->leader->elected)
                (void) text_format(x->refusal, sizeof(x->refusal),
                                   "this replica has just begun to lead and is reading the store; %s", retry);
        else if (holder[0] != '\0')
                (void) text_format(x->refusal, sizeof(x->refusal),
                                   "this replica does not lead, '%.100s' does; %s", holder, retry);
        else
                (void) text_format(x->refusal, sizeof(x->refusal), "this replica does not lead; %s", retry);
        return x->refusal;
}

static void tell(struct leader *l)
{
        struct extender *x = l->extender;
        bool leading = leader_leads(x);

        if (leading == l->told)
                return;
        l->told = leading;
        extender_log(x, LOG_NOTICE, "leader", "leading=%s holder=\"%s\"", leading ? "yes" : "no",
                     holder_of(x));
        for (size_t i = 0; i < x->leader_watch_count; i++)
                x->leader_watches[i].changed(x->leader_watches[i].userdata, leading);
}

static void look(struct leader *l)
{
        bool elected = is_elected(l);

        if (elected && !l->elected && cluster_is_ready(l->extender->cluster)) {
                l->elected = true;
                l->fresh = l->read_since;
                if (!l->fresh)
                        cluster_refresh(l->extender->cluster);
        } else if (!elected)
                l->elected = l->fresh = l->read_since = false;
        tell(l);
}

void leader_refreshed(struct extender *x)
{
        if (x->leader == NULL || !x->leader->elected)
                return;
        x->leader->fresh = true;
        look(x->leader);
}

void leader_look(struct extender *x)
{
        if (x->leader != NULL)
                look(x->leader);
}

static void on_changed(void *userdata, bool leading, const char *holder)
{
        (void) leading;
        (void) holder;
        look(userdata);
}

static void on_trouble(void *userdata, const char *sentence)
{
        struct leader *l = userdata;

        extender_log(l->extender, LOG_WARNING, "leader", "trouble=\"%s\"", sentence);
}

static bool is_idle(void *userdata)
{
        const struct leader *l = userdata;

        return l->extender->commits == 0;
}

/* A leader that cannot renew stops at three fifths of the time after which another may begin; what it had
 * begun by then has the rest to end, less a little. */
static unsigned renew_sec(const struct extender *x)
{
        unsigned sec = (x->options->leader_lease_sec * 3 + 4) / 5;

        return sec < x->options->leader_lease_sec ? sec : x->options->leader_lease_sec - 1;
}

uint64_t leader_commit_usec(const struct extender *x)
{
        return (uint64_t) (x->options->leader_lease_sec - renew_sec(x)) * 1000000 - COMMIT_SLACK_USEC;
}

static int open_lease(struct leader *l, struct err *err)
{
        const struct extender_options *o = l->extender->options;
        char host[256] = "", identity[512];
        struct lease_options options = { .kubeconfig = o->kubeconfig,
                                         .namespace_ = o->leader_namespace,
                                         .name = LEASE_NAME,
                                         .identity = identity,
                                         .beside = o->beside_scheduler,
                                         .host = host,
                                         .duration_sec = o->leader_lease_sec,
                                         .renew_sec = renew_sec(l->extender),
                                         .retry_sec = 1 + o->leader_lease_sec / 20,
                                         .changed = on_changed,
                                         .trouble = on_trouble,
                                         .idle = is_idle,
                                         .userdata = l };

        if (gethostname(host, sizeof(host) - 1) < 0)
                return err_set(err, -errno, "the name of this host: %m");
        if (o->identity != NULL) /* by the address: a process that starts again there is the same replica */
                (void) text_copy(identity, sizeof(identity), o->identity);
        else
                (void) text_format(identity, sizeof(identity), "%s_%s", host,
                                   http_server_address(l->extender->server));
        return lease_open(l->extender->loop, &options, &l->lease, err);
}

static void complain(struct leader *l, const char *what)
{
        if (!l->complained)
                extender_log(l->extender, LOG_WARNING, "leader", "trouble=\"%s '%s' in the store: %s\"", what,
                             LOCK_NAME, strerror(errno));
        l->complained = true;
}

/* Is the file that we have locked still the one that others would lock? */
static bool lock_is_good(const struct leader *l)
{
        struct stat ours, theirs;

        return fstat(l->lock_fd, &ours) == 0 && fstatat(l->directory_fd, LOCK_NAME, &theirs, 0) == 0 &&
               ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

static void unlock(struct leader *l)
{
        if (l->lock_fd >= 0)
                (void) close(l->lock_fd);
        l->lock_fd = -1;
}

static void try_lock(struct leader *l)
{
        int fd = openat(l->directory_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0) {
                complain(l, "open");
                return;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        complain(l, "lock");
                (void) close(fd);
                return;
        }
        l->complained = false;
        l->lock_fd = fd;
        if (!lock_is_good(l)) /* somebody put another in its place just now */
                unlock(l);
}

static int open_directory(struct leader *l)
{
        const char *path = l->extender->options->store + strlen("dir:");
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (l->directory_fd >= 0)
                (void) close(l->directory_fd);
        l->directory_fd = fd;
        return 0;
}

static void on_again(void *userdata)
{
        struct leader *l = userdata;

        if (l->lock_fd >= 0 && !lock_is_good(l))
                unlock(l);
        if (l->lock_fd < 0 && open_directory(l) == 0)
                try_lock(l);
        look(l);
}

static int open_lock(struct leader *l, struct err *err)
{
        int r = open_directory(l);

        if (r < 0)
                return err_set(err, r, "open the store's directory: %s", strerror(-r));
        try_lock(l);
        l->read_since = l->lock_fd >= 0; /* the store is opened after this */
        return loop_every(l->extender->loop, LOCK_USEC, LOCK_USEC, on_again, l, &l->again);
}

int leader_open(struct extender *x, struct err *err)
{
        struct leader *l;

        if (x->options->no_leader_elect)
                return 0;
        l = calloc(1, sizeof(*l));
        if (l == NULL)
                return err_set(err, -ENOMEM, "no memory");
        l->extender = x;
        l->directory_fd = l->lock_fd = -1;
        x->leader = l;
        return text_starts_with(x->options->store, "dir:") ? open_lock(l, err) : 0;
}

int leader_campaign(struct extender *x, struct err *err)
{
        return x->leader == NULL || x->leader->again != NULL ? 0 : open_lease(x->leader, err);
}

void leader_close(struct extender *x)
{
        struct leader *l = x->leader;

        if (l == NULL)
                return;
        lease_give_back(l->lease);
        lease_close(l->lease);
        sd_event_source_disable_unref(l->again);
        unlock(l);
        if (l->directory_fd >= 0)
                (void) close(l->directory_fd);
        free(l);
        x->leader = NULL;
}

int leader_watch(struct extender *x, void (*changed)(void *userdata, bool leading), void *userdata)
{
        if (x->leader_watch_count == LEADER_WATCHES_MAX)
                return -E2BIG;
        x->leader_watches[x->leader_watch_count++] = (struct leader_watcher){ changed, userdata };
        if (leader_leads(x))
                changed(userdata, true);
        return 0;
}
