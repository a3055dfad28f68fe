/* Report: when the store is written, tried again and touched, and which events are news. */
#include "agent/node_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/failpoint.h"
#include "io/loop.h"
#include "store/store.h"

#define WRITE_PERIOD_USEC UINT64_C(1000000)
#define RETRY_USEC        UINT64_C(5000000)
#define LEAVE_RETRY_USEC  UINT64_C(100000) /* its process ends soon, answered or not */
#define LOOK_USEC         UINT64_C(50000)  /* between two looks whether the kubelet has its lists */
#define TOUCH_USEC        UINT64_C(10000000)
#define EVENT_USEC        UINT64_C(300000000)
#define EVENTS_REMEMBERED 256

struct remembered {
        char device[DEVICE_ID_BYTES];
        char reason[64];
        uint64_t usec; /* CLOCK_MONOTONIC; 0 = free */
};

struct node_report {
        const struct services *services;
        const char *node;
        struct store *store; /* NULL = none */
        sd_event_source *write_timer, *touch_timer;
        bool published, writing, due; /* due: what is published is newer than what was written */
        bool leaving;
        uint64_t opened_usec, last_write_usec;
        struct summary_condition conditions[SUMMARY_CONDITIONS]; /* as they were written last */
        struct node_report_status status;
        struct remembered remembered[EVENTS_REMEMBERED];
};

static void arm(struct node_report *r, uint64_t delay_usec)
{
        if (!loop_is_armed(r->write_timer))
                loop_rearm(r->write_timer, delay_usec);
}

static void on_written(void *userdata, int result, const char *sentence)
{
        struct node_report *r = userdata;

        r->writing = false;
        if (result == -ECANCELED)
                return; /* the store is being closed */
        if (result < 0) {
                uint64_t retry_usec = r->leaving ? LEAVE_RETRY_USEC : RETRY_USEC;

                r->status.failures_total++;
                (void) text_copy(r->status.trouble, sizeof(r->status.trouble), sentence);
                log_line(r->services->log, LOG_WARNING, "store", "write=failed retry_s=%.3g error=\"%s\"",
                         (double) retry_usec / 1e6, sentence);
                r->due = true;
                arm(r, retry_usec);
                return;
        }
        FAILPOINT("report.written");
        r->status.writes_total++;
        r->status.trouble[0] = '\0';
        (void) store_touch(r->store, r->node); /* a file that is gone is found by the next touch */
        if (r->due)
                arm(r, r->leaving ? 0 : WRITE_PERIOD_USEC);
}

static void write_now(struct node_report *r)
{
        json_t *object;

        if (r->writing || !r->published)
                return; /* on_written() goes on */
        summary_judge(r->services->published, r->conditions);
        if (r->leaving)
                summary_leave(r->conditions, clock_realtime_usec());
        object = inventory_json_tell(r->services->published, r->conditions,
                                     clock_realtime_usec() / 1000000 * 1000000);
        if (object == NULL)
                return;
        r->due = false;
        r->writing = true;
        r->last_write_usec = loop_now_usec(r->services->loop);
        FAILPOINT("report.write");
        store_put(r->store, STORE_INVENTORY, NULL, r->node, object, on_written, r);
        json_decref(object);
}

/* Of the first alone: later ones are told while the plugin serves. */
static bool is_too_soon(const struct node_report *r)
{
        const struct services *s = r->services;

        return r->last_write_usec == 0 && s->serves != NULL && !s->serves(s->userdata) &&
               loop_now_usec(s->loop) - r->opened_usec < NODE_REPORT_FIRST_USEC;
}

static void on_write_timer(void *userdata)
{
        struct node_report *r = userdata;

        if (r->due && is_too_soon(r))
                arm(r, LOOK_USEC);
        else if (r->due)
                write_now(r);
}

void node_report_leave(struct node_report *r)
{
        r->leaving = true;
        if (r->store == NULL || !r->published)
                return;
        r->due = true;
        write_now(r); /* one that is under way is followed by another */
}

void node_report_changed(struct node_report *r)
{
        uint64_t now = loop_now_usec(r->services->loop), since = now - r->last_write_usec;

        r->published = true;
        if (r->store == NULL)
                return;
        r->due = true;
        if (r->writing || loop_is_armed(r->write_timer))
                return;
        if (is_too_soon(r))
                arm(r, LOOK_USEC);
        else if (r->last_write_usec == 0 || since >= WRITE_PERIOD_USEC)
                write_now(r);
        else
                arm(r, WRITE_PERIOD_USEC - since);
}

static void on_touch(void *userdata)
{
        struct node_report *r = userdata;

        if (!r->due && !r->writing && r->status.writes_total > 0 && store_touch(r->store, r->node) < 0) {
                r->due = true; /* somebody took the file away */
                write_now(r);
        }
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct node_report *r = userdata;

        (void) kind;
        log_line(r->services->log, LOG_WARNING, "store", "trouble=\"%s\"", sentence);
}

int node_report_new(const struct services *services, const char *node, const char *store,
                    const char *kubeconfig, struct node_report **ret, struct err *err)
{
        struct node_report *r = calloc(1, sizeof(*r));
        const struct store_options options = {
                .spec = store, .kubeconfig = kubeconfig, .trouble = on_trouble, .userdata = r
        };
        int result;

        if (r == NULL)
                return err_set(err, -ENOMEM, "no memory for the report");
        r->services = services;
        r->node = node;
        r->opened_usec = loop_now_usec(services->loop);
        *ret = r;
        if (strcmp(store, "none") == 0)
                return 0;
        result = store_open(services->loop, &options, &r->store, err);
        if (result < 0)
                return err_wrap(err, result, "--store %s", store);
        r->status.enabled = true;
        result = loop_timer(services->loop, on_write_timer, r, &r->write_timer);
        if (result == 0)
                result = loop_every(services->loop, TOUCH_USEC, TOUCH_USEC, on_touch, r, &r->touch_timer);
        return result < 0 ? err_set(err, result, "no timer for the store") : 0;
}

void node_report_free(struct node_report *r)
{
        if (r == NULL)
                return;
        sd_event_source_disable_unref(r->write_timer);
        (void) sd_event_source_unref(r->touch_timer);
        store_close(r->store);
        free(r);
}

/* Was the same said about the same device a short while ago? Otherwise it is remembered from now on. */
static bool is_repeated(struct node_report *r, const char *device, const char *reason)
{
        uint64_t now = loop_now_usec(r->services->loop);
        struct remembered *oldest = &r->remembered[0];

        for (size_t i = 0; i < EVENTS_REMEMBERED; i++) {
                struct remembered *m = &r->remembered[i];

                if (m->usec != 0 && strcmp(m->device, device) == 0 && strcmp(m->reason, reason) == 0) {
                        if (now - m->usec < EVENT_USEC)
                                return true;
                        oldest = m;
                        break;
                }
                if (m->usec < oldest->usec)
                        oldest = m;
        }
        (void) text_copy(oldest->device, sizeof(oldest->device), device);
        (void) text_copy(oldest->reason, sizeof(oldest->reason), reason);
        oldest->usec = now;
        return false;
}

void node_report_event(struct node_report *r, const char *type, const char *reason, const char *device,
                       const char *sentence)
{
        char message[640], field[DEVICE_ID_BYTES + 32];

        if (is_repeated(r, device != NULL ? device : "", reason))
                return;
        if (device != NULL)
                (void) text_format(message, sizeof(message), "device %s: %s", device, sentence);
        else
                (void) text_copy(message, sizeof(message), sentence);
        (void) text_format(field, sizeof(field), "status.devices{%s}", device != NULL ? device : "");
        r->status.events_total++;
        log_line(r->services->log, type[0] == 'W' ? LOG_WARNING : LOG_INFO, "event",
                 "reason=%s message=\"%s\"", reason, message);
        if (r->store != NULL) {
                const struct store_event event = { .object_kind = "NodeAccelerators",
                                                   .name = r->node,
                                                   .type = type,
                                                   .reason = reason,
                                                   .message = message,
                                                   .field = device != NULL ? field : NULL };

                store_event(r->store, &event);
        }
}

void node_report_status(const struct node_report *r, struct node_report_status *ret)
{
        *ret = r->status;
        ret->in_step = r->store == NULL || (!r->due && !r->writing);
}
