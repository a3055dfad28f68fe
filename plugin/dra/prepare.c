/* Prepare: NodePrepareResources and NodeUnprepareResources: an answer for every claim of the call, and for
 * those alone. */
#include "plugin/dra/prepare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/failpoint.h"
#include "io/loop.h"
#include "plugin/dra/claim_answer.h"
#include "plugin/dra/claim_lookup.h"
#include "plugin/dra/claims_request.h"
#include "plugin/dra/dra_internal.h"
#include "store/store_read.h"

#define ARENA_BYTES       ((size_t) 8 << 20)
#define HELD_LOOK_USEC    UINT64_C(100000)
#define ENDING_LOOK_USEC  UINT64_C(300000)
#define EARLIER_WAIT_USEC UINT64_C(1000000)
/* A kubelet that is refused looks at the pod again in its own time, after 60 to 90 s, and waits 45 s for an
 * answer: whose holder is about to go is kept waiting nearly so long. */
#define HELD_WAIT_USEC   UINT64_C(3000000)
#define ENDING_WAIT_USEC UINT64_C(40000000)

/* One claim of a call. */
struct asked {
        struct dra_prepare *call;
        char uid[DRA_STATE_UID_BYTES];
        char namespace_[OBJECT_NAME_LABEL_BYTES];
        char name[OBJECT_NAME_DNS_BYTES];
        struct dra_state_claim read; /* what the store said of it, until it is in the state */
        bool added;                  /* by this call */
        bool looked_again;           /* it was read anew, since what it is to have seemed to be free */
        char unread[240];            /* why it could not be, when it was to be; "" = it could */
        enum dra_status_refusal why; /* where there is an error */
        char error[480];             /* "" = none */
};

struct dra_prepare {
        struct dra *dra;
        struct grpc_call *call; /* NULL = the kubelet has given it up */
        struct asked *asked;
        size_t count, waiting;
        uint64_t begun_usec, patience_usec; /* so long it waits for who holds what it is to have */
        sd_event_source *look;              /* is what was held free? */
        struct claim_lookup holders;        /* claims that have it */
        bool has_asked;                     /* of them */
        struct dra_prepare *next;
};

static void call_free(struct dra_prepare *call)
{
        struct dra_prepare **link = &call->dra->calls;

        while (*link != NULL && *link != call)
                link = &(*link)->next;
        if (*link == call)
                *link = call->next;
        for (size_t i = 0; i < call->count; i++)
                dra_state_claim_free(&call->asked[i].read);
        (void) sd_event_source_disable_unref(call->look);
        claim_lookup_free(&call->holders);
        free(call->asked);
        free(call);
}

/* Somebody has a device, who may be about to go. */
static bool is_held(const struct asked *asked)
{
        return asked->error[0] != '\0' && asked->why == DRA_STATUS_HELD;
}

static void refuse(struct asked *asked, enum dra_status_refusal why, const char *sentence)
{
        asked->why = why;
        (void) text_format(asked->error, sizeof(asked->error), "claim %s/%s: %s", asked->namespace_,
                           asked->name, sentence);
        text_harmless(asked->error, 0);
}

/* Who has a device that the claim is to have? Return: false, and said, where somebody has. */
static bool check_free(const struct dra *dra, struct asked *asked)
{
        for (size_t i = 0; i < asked->read.device_count; i++) {
                const struct dra_state_device *device = &asked->read.devices[i];
                const struct dra_share_room room =
                        bundles_room(&dra->inventory, inventory_find_device(&dra->inventory, device->id));
                const struct dra_state_claim *holder =
                        dra_state_rival(&dra->file.state, &asked->read, i, &room);
                char sentence[400], whom[300] = "";
                enum dra_held held;

                if (device->admin)
                        continue;
                if (holder == &asked->read) {
                        (void) text_format(sentence, sizeof(sentence),
                                           device->share[0] != '\0'
                                                   ? "its shares of device '%s' are more than that has"
                                                   : "it has its device '%s', or a part of it, twice",
                                           device->name);
                        refuse(asked, DRA_STATUS_CLAIM, sentence);
                        return false;
                }
                if (holder != NULL) {
                        (void) text_format(sentence, sizeof(sentence),
                                           "its device '%s' is held by claim %s/%.200s", device->name,
                                           holder->namespace_, holder->name);
                        refuse(asked, DRA_STATUS_HELD, sentence);
                        return false;
                }
                held = dra->options.held(dra->options.userdata, device->id, whom, sizeof(whom));
                if (held == DRA_FREE)
                        continue;
                (void) text_format(sentence, sizeof(sentence), "its device '%s' %s%s", device->name,
                                   held == DRA_HELD
                                           ? "is held through the device plugin by "
                                           : "may be held by a pod: the kubelet has not said yet who "
                                             "holds what",
                                   whom);
                refuse(asked, DRA_STATUS_HELD, sentence);
                return false;
        }
        return true;
}

/* In this boot of the node: what the account has of an earlier one is asked for anew. */
static bool is_prepared(const struct dra *dra, const char *uid)
{
        const struct dra_state_claim *claim = dra_state_find(&dra->file.state, uid);

        return claim != NULL && !dra_state_is_earlier(claim, dra->inventory.boot_id);
}

/* Two claims of one call may have one uid, or one device. One that waited is taken as it is read after that
 * alone: it may have been given other devices meanwhile, or be gone. */
static void take_into_state(struct dra *dra, struct asked *asked)
{
        if (is_held(asked)) { /* until now */
                if (!asked->looked_again && !is_prepared(dra, asked->uid))
                        return;
                asked->looked_again = false;
                asked->error[0] = '\0';
        }
        if (asked->error[0] == '\0' && asked->read.device_count > 0 && !is_prepared(dra, asked->uid)) {
                claim_cdi_remove(dra->cdi_directory, asked->uid);
                dra_file_remove(&dra->file, asked->uid);
        }
        if (asked->added || asked->error[0] != '\0' ||
            asked->read.device_count == 0 || /* it was prepared, so nobody read it */
            dra_state_find(&dra->file.state, asked->uid) != NULL || !check_free(dra, asked))
                return;
        asked->added = dra_file_add(&dra->file, &asked->read) == 0;
        if (!asked->added)
                refuse(asked, DRA_STATUS_FILES, "no room for another claim on this node");
}

static void write_spec(struct dra *dra, struct asked *asked)
{
        const struct dra_state_claim *claim = dra_state_find(&dra->file.state, asked->uid);
        const struct claim_cdi_node node = dra_cdi_node(dra);
        struct err err = { 0 };

        if (asked->error[0] != '\0' || claim == NULL || claim_cdi_write(&node, claim, &err) == 0)
                return;
        refuse(asked, DRA_STATUS_FILES, err.msg);
        if (asked->added) /* one of before may have containers that run */
                dra_file_remove(&dra->file, asked->uid);
}

static void refuse_all(struct dra_prepare *call, const char *sentence)
{
        for (size_t i = 0; i < call->count; i++)
                if (call->asked[i].error[0] == '\0')
                        refuse(&call->asked[i], DRA_STATUS_FILES, sentence);
}

/* What the state has is on disk before a container may use it; what cannot be set up is in neither. */
static void commit(struct dra_prepare *call)
{
        struct dra *dra = call->dra;
        struct err err = { 0 };
        uint64_t before;

        if (dra_file_begin(&dra->file, DRA_FILE_WAIT_USEC, &err) < 0) {
                if (call->look == NULL) /* later those without an error are on disk */
                        refuse_all(call, err.msg);
                return;
        }
        before = dra->file.revision;
        FAILPOINT("dra.prepare");
        for (size_t i = 0; i < call->count; i++)
                take_into_state(dra, &call->asked[i]);
        if (dra_file_save(&dra->file, &err) < 0) {
                refuse_all(call, err.msg);
                dra_file_end(&dra->file);
                dra_file_refresh(&dra->file);
                return;
        }
        FAILPOINT("dra.saved");
        for (size_t i = 0; i < call->count; i++)
                write_spec(dra, &call->asked[i]);
        if (dra_file_save(&dra->file, &err) < 0)
                dra_log(dra, LOG_ERR, "claims: %s", err.msg);
        dra_file_end(&dra->file);
        if (dra->file.revision != before)
                dra_claims_changed(dra);
}

static void fill_entry(const struct dra *dra, const struct asked *asked, struct pb_arena *arena,
                       Dra__PreparedEntry *entry, Dra__Prepared *prepared)
{
        const struct dra_state_claim *claim = dra_state_find(&dra->file.state, asked->uid);

        dra__prepared_entry__init(entry);
        dra__prepared__init(prepared);
        entry->uid = (char *) asked->uid;
        entry->prepared = prepared;
        prepared->error = (char *) asked->error;
        if (asked->error[0] != '\0' || claim == NULL)
                return;
        claim_answer_fill(claim, dra->node, arena, prepared);
}

static uint8_t *pack_answer(const struct dra_prepare *call, struct pb_arena *arena, size_t *ret_bytes)
{
        Dra__PreparedResponse response = DRA__PREPARED_RESPONSE__INIT;
        Dra__PreparedEntry *entries = pb_arena_take(arena, (call->count + 1) * sizeof(*entries));
        Dra__Prepared *prepared = pb_arena_take(arena, (call->count + 1) * sizeof(*prepared));

        response.claims = pb_arena_take(arena, (call->count + 1) * sizeof(*response.claims));
        for (size_t i = 0; !arena->failed && i < call->count; i++) {
                fill_entry(call->dra, &call->asked[i], arena, &entries[i], &prepared[i]);
                response.claims[response.n_claims++] = &entries[i];
        }
        return arena->failed ? NULL : pb_pack(&response, ret_bytes);
}

/* Of a claim that is not there, or could not be read, nobody would look for an event. */
static void tell_refused(struct dra *dra, const struct asked *asked)
{
        char message[600];
        const struct store_event event = { .object_kind = "ResourceClaim",
                                           .namespace_ = asked->namespace_,
                                           .name = asked->name,
                                           .uid = asked->uid,
                                           .type = "Warning",
                                           .reason = "ClaimRefused",
                                           .message = message };

        dra->status.refused_total[asked->why]++;
        dra_log(dra, LOG_WARNING, "not prepared: %s", asked->error);
        (void) text_format(message, sizeof(message), "node %.80s: not prepared: %s", dra->node, asked->error);
        if (asked->why != DRA_STATUS_STORE &&
            refusals_tell(&dra->refusals, asked->namespace_, asked->uid, clock_monotonic_usec()))
                store_event(dra->store, &event);
}

static void count_answer(const struct dra_prepare *call)
{
        struct dra_status *status = &call->dra->status;

        for (size_t i = 0; i < call->count; i++)
                if (call->asked[i].error[0] != '\0')
                        tell_refused(call->dra, &call->asked[i]);
                else
                        status->prepared_total++;
        histogram_observe(&status->prepare, (double) (clock_monotonic_usec() - call->begun_usec) / 1e6);
}

static void on_look(void *userdata);

static bool on_holder(void *userdata, const struct claim_lookup_claim *claim, enum claim_lookup_answer said)
{
        struct dra_prepare *call = userdata;

        (void) claim;
        if (said == CLAIM_LOOKUP_GONE)
                call->patience_usec = ENDING_WAIT_USEC;
        return said != CLAIM_LOOKUP_GONE;
}

/* All claims that have a device, or a share of it, that is waited for: any of them may be the one that goes.
 */
static void add_holders(struct dra_prepare *call, const struct asked *asked)
{
        const struct dra_state *state = &call->dra->file.state;

        for (size_t d = 0; d < asked->read.device_count; d++)
                for (size_t i = 0; i < state->count; i++)
                        if (dra_state_has(&state->claims[i], asked->read.devices[d].id))
                                (void) claim_lookup_add(&call->holders, &state->claims[i]);
}

/* Whose claim is gone from the cluster gives its device up when its containers have ended: as soon as the
 * kubelet has seen to it, or a minute after a restart in which it forgot that pod. Return: the store is
 * asked, which happens once. */
static bool ask_of_holders(struct dra_prepare *call)
{
        const struct claim_lookup_options options = { .state = &call->dra->file.state,
                                                      .store = call->dra->store,
                                                      .node = call->dra->node,
                                                      .each = on_holder,
                                                      .end = on_look,
                                                      .userdata = call };

        if (call->patience_usec == ENDING_WAIT_USEC || call->has_asked || call->dra->store == NULL)
                return false;
        call->has_asked = true;
        for (size_t i = 0; i < call->count; i++)
                if (is_held(&call->asked[i]))
                        add_holders(call, &call->asked[i]);
        return claim_lookup_begin(&call->holders, &options);
}

/* A pod that ends gives its chip up a moment after the cluster has given it to the next one: that moment is
 * waited for. Return: it is, the call is not answered yet. */
static bool wait_for_holders(struct dra_prepare *call)
{
        const struct dra *dra = call->dra;
        bool held = false;

        for (size_t i = 0; i < call->count; i++)
                held = held || is_held(&call->asked[i]);
        if (!held || (call->look == NULL && loop_timer(dra->loop, on_look, call, &call->look) < 0))
                return false;
        if (clock_monotonic_usec() >= call->begun_usec + call->patience_usec)
                return ask_of_holders(call);
        if (call->patience_usec == ENDING_WAIT_USEC) {
                loop_rearm(call->look, ENDING_LOOK_USEC);
                return true;
        }
        dra->options.ask(dra->options.userdata);
        dra_look_for_earlier(call->dra, EARLIER_WAIT_USEC);
        loop_rearm(call->look, HELD_LOOK_USEC);
        return true;
}

/* Given back while another of the call was waited for; or nobody could say what it is allocated by now. */
static void refuse_undone(struct dra_prepare *call)
{
        for (size_t i = 0; i < call->count; i++) {
                struct asked *asked = &call->asked[i];

                if (asked->error[0] == '\0' && dra_state_find(&call->dra->file.state, asked->uid) == NULL)
                        refuse(asked, DRA_STATUS_CLAIM, "it was unprepared meanwhile");
                if (is_held(asked) && asked->unread[0] != '\0')
                        refuse(asked, DRA_STATUS_STORE, asked->unread);
        }
}

static void answer(struct dra_prepare *call)
{
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct pb_arena arena;
        size_t size;

        if (call->call != NULL) {
                commit(call);
                if (wait_for_holders(call))
                        return;
                refuse_undone(call);
                count_answer(call);
                pb_arena_init(&arena, ARENA_BYTES);
                bytes = pack_answer(call, &arena, &size);
                if (bytes == NULL)
                        grpc_call_finish(call->call, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer");
                else {
                        FAILPOINT("dra.prepared");
                        grpc_call_reply(call->call, bytes, size);
                }
                pb_arena_free(&arena);
        }
        call_free(call);
}

static void on_object(void *userdata, const json_t *object)
{
        struct asked *asked = userdata;
        const struct dra *dra = asked->call->dra;
        const struct claim_node node = {
                .name = dra->node, .inventory = &dra->inventory, .names = dra->names, .bundles = &dra->bundles
        };
        struct err err = { 0 };

        dra_state_claim_free(&asked->read); /* as it was when it began to wait */
        if (claim_read(object, asked->uid, &node, &asked->read, &err) < 0)
                refuse(asked, DRA_STATUS_CLAIM, err.msg);
        (void) text_copy(asked->read.boot, sizeof(asked->read.boot), dra->inventory.boot_id);
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct asked *asked = userdata;
        struct dra_prepare *call = asked->call;
        bool again = is_held(asked);

        if (result == 0)
                asked->looked_again = again;
        else if (again && result == -ENOENT)
                refuse(asked, DRA_STATUS_STORE, "it was deleted while it waited for its device");
        else if (again && result != -ECANCELED) /* a store that is away for a moment: it waits on */
                (void) text_copy(asked->unread, sizeof(asked->unread), sentence);
        else if (asked->error[0] == '\0')
                refuse(asked, DRA_STATUS_STORE, result == -ENOENT ? "it is not there" : sentence);
        if (--call->waiting == 0)
                answer(call);
}

static void read_claim(struct asked *asked)
{
        asked->call->waiting++;
        store_read(asked->call->dra->store, STORE_RESOURCE_CLAIM, asked->namespace_, asked->name, on_object,
                   on_answer, asked);
}

/* Claims that wait are read again once what they are to have is free, and not at every look. One that
 * another call has prepared meanwhile is in the account. */
static void on_look(void *userdata)
{
        struct dra_prepare *call = userdata;
        struct dra *dra = call->dra;

        call->waiting = 1; /* ourselves: an answer may come from within */
        dra_file_refresh(&dra->file);
        for (size_t i = 0; call->call != NULL && i < call->count; i++) {
                struct asked *asked = &call->asked[i];

                asked->looked_again = false;
                asked->unread[0] = '\0';
                if (is_held(asked) && !is_prepared(dra, asked->uid) && dra->store != NULL &&
                    check_free(dra, asked))
                        read_claim(asked);
        }
        if (--call->waiting == 0)
                answer(call);
}

static void on_closed(void *userdata, struct grpc_call *grpc)
{
        struct dra_prepare *call = userdata;

        (void) grpc;
        call->call = NULL; /* the store's answers end it */
}

static void fill_asked(struct asked *asked, const Dra__Claim *claim)
{
        (void) text_copy(asked->uid, sizeof(asked->uid), claim->uid);
        (void) text_copy(asked->namespace_, sizeof(asked->namespace_), claim->namespace_);
        (void) text_copy(asked->name, sizeof(asked->name), claim->name);
}

static struct dra_prepare *call_new(struct dra *dra, struct grpc_call *grpc,
                                    const Dra__ClaimsRequest *request)
{
        struct dra_prepare *call = calloc(1, sizeof(*call));
        struct asked *asked = calloc(request->n_claims + 1, sizeof(*asked));

        if (call == NULL || asked == NULL) {
                free(call);
                free(asked);
                return NULL;
        }
        *call = (struct dra_prepare){ .dra = dra,
                                      .call = grpc,
                                      .asked = asked,
                                      .begun_usec = clock_monotonic_usec(),
                                      .patience_usec = HELD_WAIT_USEC };
        for (size_t i = 0; i < request->n_claims; i++) {
                bool again = false;

                for (size_t j = 0; j < call->count; j++) /* a map has a key once */
                        again = again || strcmp(asked[j].uid, request->claims[i]->uid) == 0;
                if (again)
                        continue;
                fill_asked(&asked[call->count], request->claims[i]);
                asked[call->count++].call = call;
        }
        call->next = dra->calls;
        dra->calls = call;
        return call;
}

void prepare_handle(void *userdata, struct grpc_call *grpc, const uint8_t *message, size_t size_bytes)
{
        struct dra *dra = userdata;
        const Dra__ClaimsRequest *request;
        struct dra_prepare *call = NULL;
        struct pb_arena arena;

        pb_arena_init(&arena, ARENA_BYTES);
        request = claims_request_unpack(&arena, grpc, message, size_bytes);
        if (request != NULL) {
                call = call_new(dra, grpc, request);
                if (call == NULL)
                        grpc_call_finish(grpc, GRPC_RESOURCE_EXHAUSTED, "no memory for the request");
        }
        pb_arena_free(&arena);
        if (call == NULL)
                return;
        dra_file_refresh(&dra->file);
        grpc_call_keep(grpc, NULL, on_closed, call);
        call->waiting = 1; /* ourselves: an answer may come from within */
        for (size_t i = 0; i < call->count; i++) {
                struct asked *asked = &call->asked[i];

                if (is_prepared(dra, asked->uid))
                        continue;
                read_claim(asked);
        }
        if (--call->waiting == 0)
                answer(call);
}

static uint8_t *pack_undone(const Dra__ClaimsRequest *request, const char *error, struct pb_arena *arena,
                            size_t *ret_bytes)
{
        Dra__UnpreparedResponse response = DRA__UNPREPARED_RESPONSE__INIT;
        Dra__UnpreparedEntry *entries = pb_arena_take(arena, (request->n_claims + 1) * sizeof(*entries));
        Dra__Unprepared result = DRA__UNPREPARED__INIT;

        response.claims = pb_arena_take(arena, (request->n_claims + 1) * sizeof(*response.claims));
        if (arena->failed)
                return NULL;
        result.error = (char *) error;
        for (size_t i = 0; i < request->n_claims; i++) {
                dra__unprepared_entry__init(&entries[i]);
                entries[i].uid = request->claims[i]->uid;
                entries[i].unprepared = &result;
                response.claims[response.n_claims++] = &entries[i];
        }
        return pb_pack(&response, ret_bytes);
}

/* Nobody else is asked: the claim may be gone, and the API server too. A spec goes before its entry: it is a
 * record of the claim, and whoever dies between the two is asked again by the kubelet. */
static int undo(struct dra *dra, const Dra__ClaimsRequest *request, struct err *err)
{
        int r = dra_file_begin(&dra->file, DRA_FILE_WAIT_USEC, err);
        size_t before = dra->file.state.count;

        if (r < 0)
                return r;
        for (size_t i = 0; i < request->n_claims; i++) {
                claim_cdi_remove(dra->cdi_directory, request->claims[i]->uid);
                dra_file_remove(&dra->file, request->claims[i]->uid);
        }
        r = dra_file_save(&dra->file, err);
        FAILPOINT("dra.undone");
        dra_file_end(&dra->file);
        dra_file_refresh(&dra->file);
        if (dra->file.state.count < before)
                dra->status.unprepared_total += before - dra->file.state.count;
        if (dra->file.state.count != before)
                dra_claims_changed(dra);
        return r;
}

void prepare_undo(void *userdata, struct grpc_call *grpc, const uint8_t *message, size_t size_bytes)
{
        struct dra *dra = userdata;
        const Dra__ClaimsRequest *request;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct err err = { 0 };
        struct pb_arena arena;
        size_t size;

        pb_arena_init(&arena, ARENA_BYTES);
        request = claims_request_unpack(&arena, grpc, message, size_bytes);
        if (request != NULL) {
                (void) undo(dra, request, &err);
                bytes = pack_undone(request, err.msg, &arena, &size);
                if (bytes == NULL)
                        grpc_call_finish(grpc, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer");
                else
                        grpc_call_reply(grpc, bytes, size);
        }
        pb_arena_free(&arena);
}

void prepare_close(struct dra *dra)
{
        while (dra->calls != NULL) {
                /* its connection ends later, and would tell one that is freed */
                if (dra->calls->call != NULL)
                        grpc_call_finish(dra->calls->call, GRPC_UNAVAILABLE, "the driver stops");
                call_free(dra->calls);
        }
}
