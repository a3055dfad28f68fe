/* Which of several replicas may commit; all read. Whoever begins to lead first reads the store anew: what the
 * one before committed must be known before the next commit. */
#include "store/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "store/lease.h"
#include "store/store.h"

#define LOCK_USEC 500000u

#define COMMIT_SLACK_USEC 200000u

struct watcher {
        void (*changed)(void *userdata, bool leading);
        void *userdata;
};

struct leader {
        sd_event *loop;
        struct leader_options options;
        struct lease *lease; /* kubernetes */
        int directory_fd;    /* dir */
        int lock_fd;         /* held while >= 0 */
        sd_event_source *again;
        bool elected;    /* as last seen */
        bool read_since; /* the store's very first reading began after we were elected */
        bool fresh;      /* the store was read since then */
        bool told;       /* what the others were told last */
        bool complained;
        struct watcher watches[LEADER_WATCHES_MAX];
        size_t watch_count;
        char refusal[200], lock_name[80];
};

static void say(const struct leader *l, int priority, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void say(const struct leader *l, int priority, const char *fmt, ...)
{
        char line[600];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(line, sizeof(line), fmt, values); /* cut to its field */
        va_end(values);
        l->options.log(l->options.userdata, priority, "leader", line);
}

static bool is_elected(const struct leader *l)
{
        return l->lease != NULL ? lease_leading(l->lease) : l->lock_fd >= 0;
}

bool leader_leads(const struct leader *l)
{
        return l == NULL || (l->fresh && is_elected(l));
}

static const char *holder_of(const struct leader *l)
{
        return l->lease != NULL ? lease_holder(l->lease) : "";
}

const char *leader_refuses(struct leader *l)
{
        static const char retry[] = "ask again";
        const char *holder;

        if (leader_leads(l))
                return NULL;
        holder = holder_of(l);
        if (l->elected)
                (void) text_format(l->refusal, sizeof(l->refusal),
                                   "this replica has just begun to lead and is reading the store; %s", retry);
        else if (holder[0] != '\0')
                (void) text_format(l->refusal, sizeof(l->refusal),
                                   "this replica does not lead, '%.100s' does; %s", holder, retry);
        else
                (void) text_format(l->refusal, sizeof(l->refusal), "this replica does not lead; %s", retry);
        return l->refusal;
}

static void tell(struct leader *l)
{
        bool leading = leader_leads(l);

        if (leading == l->told)
                return;
        l->told = leading;
        say(l, LOG_NOTICE, "leading=%s holder=\"%s\"", leading ? "yes" : "no", holder_of(l));
        for (size_t i = 0; i < l->watch_count; i++)
                l->watches[i].changed(l->watches[i].userdata, leading);
}

static void look(struct leader *l)
{
        bool elected = is_elected(l);

        if (elected && !l->elected && l->options.ready(l->options.userdata)) {
                l->elected = true;
                l->fresh = l->read_since;
                if (!l->fresh)
                        l->options.refresh(l->options.userdata);
        } else if (!elected)
                l->elected = l->fresh = l->read_since = false;
        tell(l);
}

void leader_refreshed(struct leader *l)
{
        if (l == NULL || !l->elected)
                return;
        l->fresh = true;
        look(l);
}

void leader_look(struct leader *l)
{
        if (l != NULL)
                look(l);
}

static void on_changed(void *userdata, bool leading, const char *holder)
{
        (void) leading;
        (void) holder;
        look(userdata);
}

static void on_trouble(void *userdata, const char *sentence)
{
        say(userdata, LOG_WARNING, "trouble=\"%s\"", sentence);
}

static bool is_idle(void *userdata)
{
        const struct leader *l = userdata;

        return l->options.idle(l->options.userdata);
}

/* A leader that cannot renew stops at three fifths of the time after which another may begin; what it had
 * begun by then has the rest to end, less a little. */
static unsigned renew_sec(unsigned lease_sec)
{
        unsigned sec = (lease_sec * 3 + 4) / 5;

        return sec < lease_sec ? sec : lease_sec - 1;
}

uint64_t leader_commit_usec(unsigned lease_sec)
{
        return (uint64_t) (lease_sec - renew_sec(lease_sec)) * 1000000 - COMMIT_SLACK_USEC;
}

int leader_campaign(struct leader *l, const char *address, struct err *err)
{
        char host[256] = "", identity[512];
        const struct leader_options *o = l == NULL ? NULL : &l->options;
        struct lease_options options = { .identity = identity,
                                         .host = host,
                                         .address = address,
                                         .changed = on_changed,
                                         .trouble = on_trouble,
                                         .idle = is_idle,
                                         .userdata = l };

        if (l == NULL || l->again != NULL)
                return 0;
        options.kubeconfig = o->kubeconfig;
        options.namespace_ = o->namespace_;
        options.name = o->name;
        options.beside = o->beside;
        options.duration_sec = o->lease_sec;
        options.renew_sec = renew_sec(o->lease_sec);
        options.retry_sec = 1 + o->lease_sec / 20;
        if (gethostname(host, sizeof(host) - 1) < 0)
                return err_set(err, -errno, "the name of this host: %m");
        if (o->identity != NULL) /* by the address: a process that starts again there is the same replica */
                (void) text_copy(identity, sizeof(identity), o->identity);
        else
                (void) text_format(identity, sizeof(identity), "%s_%s", host, address);
        return lease_open(l->loop, &options, &l->lease, err);
}

static void complain(struct leader *l, const char *what)
{
        if (!l->complained)
                say(l, LOG_WARNING, "trouble=\"%s '%s' in the store: %s\"", what, l->lock_name,
                    strerror(errno));
        l->complained = true;
}

/* Is the file that we have locked still the one that others would lock? */
static bool lock_is_good(const struct leader *l)
{
        struct stat ours, theirs;

        return fstat(l->lock_fd, &ours) == 0 && fstatat(l->directory_fd, l->lock_name, &theirs, 0) == 0 &&
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
        int fd = openat(l->directory_fd, l->lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

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
        const char *path = store_directory(l->options.store);
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
                return err_set(err, r, "open the store's directory '%.200s': %s",
                               store_directory(l->options.store), strerror(-r));
        try_lock(l);
        l->read_since = l->lock_fd >= 0; /* the store is opened after this */
        return loop_every(l->loop, LOCK_USEC, LOCK_USEC, on_again, l, &l->again);
}

int leader_open(sd_event *loop, const struct leader_options *options, struct leader **ret, struct err *err)
{
        struct leader *l = calloc(1, sizeof(*l));
        int r = 0;

        if (l == NULL)
                return err_set(err, -ENOMEM, "no memory");
        l->loop = sd_event_ref(loop);
        l->options = *options;
        l->directory_fd = l->lock_fd = -1;
        (void) text_format(l->lock_name, sizeof(l->lock_name), ".%s.lock", options->name);
        if (store_directory(options->store) != NULL)
                r = open_lock(l, err);
        if (r < 0)
                leader_close(l);
        else
                *ret = l;
        return r;
}

void leader_resign(struct leader *l)
{
        if (l != NULL)
                lease_give_back(l->lease);
}

void leader_close(struct leader *l)
{
        if (l == NULL)
                return;
        lease_close(l->lease);
        sd_event_source_disable_unref(l->again);
        unlock(l);
        if (l->directory_fd >= 0)
                (void) close(l->directory_fd);
        sd_event_unref(l->loop);
        free(l);
}

int leader_watch(struct leader *l, void (*changed)(void *userdata, bool leading), void *userdata)
{
        if (l != NULL && l->watch_count == LEADER_WATCHES_MAX)
                return -E2BIG;
        if (l != NULL)
                l->watches[l->watch_count++] = (struct watcher){ changed, userdata };
        if (leader_leads(l))
                changed(userdata, true);
        return 0;
}
