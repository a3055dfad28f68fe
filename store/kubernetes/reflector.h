/* Reflector: the objects of one kind at an API server, by list and watch, as client-go does it.
 *
 * Objects are delivered to the store's user and dropped; what is kept per object is its key, and hashes of
 * its uid and resourceVersion, so that a re-list tells what is gone and what is new. */
#pragma once

#include "base/json/json_feed.h"
#include "base/name_map.h"
#include "base/text.h"
#include "store/kubernetes/kube.h"
#include "store/store_internal.h"

enum reflector_state { REFLECTOR_LISTING, REFLECTOR_WATCHING, REFLECTOR_WAITING };

struct reflector_object {
        struct name_map_entry entry; /* the key is "namespace/name" or "name" */
        uint64_t uid_hash, version_hash;
        uint32_t list; /* the number of the list that it was last seen in */
};

struct reflector {
        struct store *store; /* borrowed, as the next two */
        struct kube_client *client;
        const char *node;       /* field selector, or NULL */
        const char *namespace_; /* read in this one alone; NULL = in all */
        struct reflector
                *of_kind; /* those of the kind, one a namespace, itself among them; NULL = it is alone */
        size_t of_kind_count;
        enum store_kind kind;
        uint64_t opened_usec;
        enum reflector_state state;
        struct kube_call *call;
        sd_event_source *timer; /* while waiting; while watching a server that sends bookmarks: for silence */
        sd_event_source *refreshing;
        struct name_map known;
        struct text line;      /* of the watch: what came after the last newline */
        struct json_feed page; /* of the list: what came of the page under way */
        size_t page_bytes;
        unsigned page_taken;     /* items of it */
        struct err page_problem; /* why it is of no use; code 0 = it is */
        char version[64];        /* resourceVersion to watch from; "" = list first */
        char continue_[2048];    /* of the list under way */
        uint32_t list;           /* number of the list under way, or done last */
        unsigned failures;       /* in a row */
        unsigned page_items; /* of a page that is asked for: fewer after one that was too large; 0 = usual */
        size_t unreadable;   /* items of the list that could not be told by a name */
        uint64_t in_step_usec;     /* when it was last known to be in step; 0 = never */
        uint64_t watch_began_usec; /* when the watch was asked for */
        bool watch_open;           /* and the API server said yes: silence now means that nothing happens */
        bool synced, missing;      /* missing: the API server does not know this kind */
        bool expired;              /* the watch said 410: list again */
        bool bookmarked;           /* this server sends bookmarks: a silent watch is a dead one */
        bool due;                  /* a list is asked for and not whole: the kind is not synced before */
        char denied[300];          /* why its namespace is not read, in the server's words; "" = it is */
        bool rechecking;           /* the list under way repeats everything */
        uint64_t recheck_version;  /* what is not newer than this should be known; 0 = cannot be told */
};

int reflector_start(struct reflector *r); /* 0 or a negative errno; to be stopped in any case */
void reflector_stop(struct reflector *r);
void reflector_refresh(struct reflector *r); /* list again now, and deliver everything */
uint64_t reflector_age_usec(const struct reflector *r, uint64_t now_usec);

/* reflector_take_page(), reflector_end_page(), reflector_take_line() - the bytes of a page of a list as they
 * come, after json_feed_begin(); its end; a line of a watch. Also entered by the fuzzer. Return: 0, -EBADMSG,
 * -E2BIG, -ENOMEM; -ESTALE for a line that says 410. */
int reflector_take_page(struct reflector *r, const char *bytes, size_t size_bytes, struct err *err);
int reflector_end_page(struct reflector *r, struct err *err);
int reflector_take_line(struct reflector *r, const char *bytes, size_t size_bytes, struct err *err);
