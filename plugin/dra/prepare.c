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
#include "plugin/dra/dra.pb-c.h"
#include "plugin/dra/dra_internal.h"
#include "store/store_read.h"

#define ARENA_BYTES     ((size_t) 8 << 20)
#define CLAIMS_PER_CALL 1024

/* One claim of a call. */
struct asked {
        struct dra_prepare *call;
        char uid[DRA_STATE_UID_BYTES];
        char namespace_[OBJECT_NAME_LABEL_BYTES];
        char name[OBJECT_NAME_DNS_BYTES];
        struct dra_state_claim read; /* what the store said of it, until it is in the state */
        bool added;                  /* by this call */
        char error[480];             /* "" = none */
};

struct dra_prepare {
        struct dra *dra;
        struct grpc_call *call; /* NULL = the kubelet has given it up */
        struct asked *asked;
        size_t count, waiting;
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
        free(call->asked);
        free(call);
}

static void refuse(struct asked *asked, const char *sentence)
{
        (void) text_format(asked->error, sizeof(asked->error), "claim %s/%s: %s", asked->namespace_,
                           asked->name, sentence);
        text_harmless(asked->error, 0);
}

/* Who has a device that the claim is to have? Return: false, and said, where somebody has. */
static bool check_free(const struct dra *dra, struct asked *asked)
{
        for (size_t i = 0; i < asked->read.device_count; i++) {
                const struct dra_state_device *device = &asked->read.devices[i];
                const struct dra_state_claim *holder = dra_state_holder(&dra->file.state, device->id);
                char sentence[400], whom[300] = "";
                enum dra_held held;

                if (device->admin)
                        continue;
                if (holder != NULL) {
                        (void) text_format(sentence, sizeof(sentence),
                                           "its device '%s' is held by claim %s/%.200s", device->name,
                                           holder->namespace_, holder->name);
                        refuse(asked, sentence);
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
                refuse(asked, sentence);
                return false;
        }
        return true;
}

/* Two claims of one call may have one uid, or one device. */
static void take_into_state(struct dra *dra, struct asked *asked)
{
        if (asked->error[0] != '\0' || dra_state_find(&dra->file.state, asked->uid) != NULL ||
            !check_free(dra, asked))
                return;
        asked->added = dra_state_add(&dra->file.state, &asked->read) == 0;
        if (!asked->added)
                refuse(asked, "no room for another claim on this node");
}

static void write_spec(struct dra *dra, struct asked *asked)
{
        const struct dra_state_claim *claim = dra_state_find(&dra->file.state, asked->uid);
        const struct claim_cdi_node node = dra_cdi_node(dra);
        struct err err = { 0 };

        if (asked->error[0] != '\0' || claim == NULL || claim_cdi_write(&node, claim, &err) == 0)
                return;
        refuse(asked, err.msg);
        if (asked->added) /* one of before may have containers that run */
                dra_state_remove(&dra->file.state, asked->uid);
}

static void refuse_all(struct dra_prepare *call, const char *sentence)
{
        for (size_t i = 0; i < call->count; i++)
                if (call->asked[i].error[0] == '\0')
                        refuse(&call->asked[i], sentence);
}

/* What the state has is on disk before a container may use it; what cannot be set up is in neither. */
static void commit(struct dra_prepare *call)
{
        struct dra *dra = call->dra;
        size_t before, specs = 0;
        struct err err = { 0 };

        if (dra_file_begin(&dra->file, &err) < 0) {
                refuse_all(call, err.msg);
                return;
        }
        before = dra->file.state.count;
        for (size_t i = 0; i < call->count; i++)
                take_into_state(dra, &call->asked[i]);
        if (dra->file.state.count != before && dra_file_save(&dra->file, &err) < 0) {
                refuse_all(call, err.msg);
                dra_file_end(&dra->file);
                dra_file_refresh(&dra->file);
                return;
        }
        specs = dra->file.state.count;
        for (size_t i = 0; i < call->count; i++)
                write_spec(dra, &call->asked[i]);
        if (dra->file.state.count != specs && dra_file_save(&dra->file, &err) < 0)
                dra_log(dra, LOG_ERR, "claims: %s", err.msg);
        dra_file_end(&dra->file);
        if (dra->file.state.count != before)
                dra_claims_changed(dra);
}

static void add_device(const struct dra *dra, const struct dra_state_claim *claim, size_t index,
                       struct pb_arena *arena, Dra__Prepared *prepared)
{
        Dra__Device *device = pb_arena_take(arena, sizeof(*device));
        char **lists = pb_arena_take(arena, 3 * sizeof(*lists)), name[CLAIM_CDI_NAME_BYTES];

        if (device == NULL || lists == NULL)
                return;
        dra__device__init(device);
        lists[0] = pb_arena_copy(arena, claim->devices[index].request);
        device->requests = lists;
        device->n_requests = 1;
        device->pool = (char *) dra->node;
        device->device = pb_arena_copy(arena, claim->devices[index].name);
        device->cdi_ids = lists + 1;
        claim_cdi_device_name(claim, index, name);
        device->cdi_ids[device->n_cdi_ids++] = pb_arena_copy(arena, name);
        if (claim_cdi_is_first(claim, index)) {
                claim_cdi_request_name(claim, index, name);
                device->cdi_ids[device->n_cdi_ids++] = pb_arena_copy(arena, name);
        }
        prepared->devices[prepared->n_devices++] = device;
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
        prepared->devices = pb_arena_take(arena, (claim->device_count + 1) * sizeof(*prepared->devices));
        for (size_t i = 0; prepared->devices != NULL && i < claim->device_count; i++)
                add_device(dra, claim, i, arena, prepared);
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

static void answer(struct dra_prepare *call)
{
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct pb_arena arena;
        size_t size;

        if (call->call != NULL) {
                commit(call);
                for (size_t i = 0; i < call->count; i++)
                        if (call->asked[i].error[0] != '\0')
                                dra_log(call->dra, LOG_WARNING, "not prepared: %s", call->asked[i].error);
                pb_arena_init(&arena, ARENA_BYTES);
                bytes = pack_answer(call, &arena, &size);
                if (bytes == NULL)
                        grpc_call_finish(call->call, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer");
                else
                        grpc_call_reply(call->call, bytes, size);
                pb_arena_free(&arena);
        }
        call_free(call);
}

static void on_object(void *userdata, const json_t *object)
{
        struct asked *asked = userdata;
        const struct dra *dra = asked->call->dra;
        const struct claim_node node = { .name = dra->node,
                                         .inventory = &dra->inventory,
                                         .names = dra->names };
        struct err err = { 0 };

        if (claim_read(object, asked->uid, &node, &asked->read, &err) < 0)
                refuse(asked, err.msg);
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct asked *asked = userdata;
        struct dra_prepare *call = asked->call;

        if (result < 0 && asked->error[0] == '\0')
                refuse(asked, result == -ENOENT ? "it is not there" : sentence);
        if (--call->waiting == 0)
                answer(call);
}

static void on_closed(void *userdata, struct grpc_call *grpc)
{
        struct dra_prepare *call = userdata;

        (void) grpc;
        call->call = NULL; /* the store's answers end it */
}

/* A name, a namespace and a uid that may be a part of a path. */
static bool fill_asked(struct asked *asked, const Dra__Claim *claim)
{
        return dra_state_uid_valid(claim->uid) && text_copy(asked->uid, sizeof(asked->uid), claim->uid) &&
               text_copy(asked->namespace_, sizeof(asked->namespace_), claim->namespace_) &&
               text_copy(asked->name, sizeof(asked->name), claim->name) &&
               object_name_label_valid(asked->namespace_) &&
               object_name_dns_valid(asked->name, strlen(asked->name));
}

static Dra__ClaimsRequest *unpack(struct pb_arena *arena, struct grpc_call *call, const uint8_t *message,
                                  size_t size_bytes)
{
        Dra__ClaimsRequest *request = pb_unpack(arena, &dra__claims_request__descriptor, message, size_bytes);
        struct asked probe = { .call = NULL };

        if (request == NULL || request->n_claims > CLAIMS_PER_CALL) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT,
                                 "the request is malformed, or has too many claims");
                return NULL;
        }
        for (size_t i = 0; i < request->n_claims; i++)
                if (!fill_asked(&probe, request->claims[i])) {
                        grpc_call_finish(call, GRPC_INVALID_ARGUMENT,
                                         "a claim has no namespace, name and uid as Kubernetes makes them");
                        return NULL;
                }
        return request;
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
        *call = (struct dra_prepare){ .dra = dra, .call = grpc, .asked = asked };
        for (size_t i = 0; i < request->n_claims; i++) {
                bool again = false;

                for (size_t j = 0; j < call->count; j++) /* a map has a key once */
                        again = again || strcmp(asked[j].uid, request->claims[i]->uid) == 0;
                if (again)
                        continue;
                (void) fill_asked(&asked[call->count], request->claims[i]);
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
        request = unpack(&arena, grpc, message, size_bytes);
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

                if (dra_state_find(&dra->file.state, asked->uid) != NULL)
                        continue;
                call->waiting++;
                store_read(dra->store, STORE_RESOURCE_CLAIM, asked->namespace_, asked->name, on_object,
                           on_answer, asked);
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

/* Nobody else is asked: the claim may be gone, and the API server too. */
static int undo(struct dra *dra, const Dra__ClaimsRequest *request, struct err *err)
{
        int r = dra_file_begin(&dra->file, err);
        size_t before = dra->file.state.count;

        if (r < 0)
                return r;
        for (size_t i = 0; i < request->n_claims; i++)
                dra_state_remove(&dra->file.state, request->claims[i]->uid);
        if (dra->file.state.count != before)
                r = dra_file_save(&dra->file, err);
        for (size_t i = 0; r == 0 && i < request->n_claims; i++)
                claim_cdi_remove(dra->cdi_directory, request->claims[i]->uid);
        dra_file_end(&dra->file);
        dra_file_refresh(&dra->file);
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
        request = unpack(&arena, grpc, message, size_bytes);
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
        while (dra->calls != NULL)
                call_free(dra->calls);
}
