/* Orders to groups and their answers; every message of theirs becomes facts, then the job is judged. */
#include "job/launcher/manager_members.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "job/launcher/manager_state.h"

static void send_next(struct manager_member *member)
{
        if (member->join == NULL || member->order_count == 0 || grpc_call_busy(member->join))
                return;
        if (grpc_call_send(member->join, member->orders[0].bytes, member->orders[0].size) < 0)
                return;
        free(member->orders[0].bytes);
        member->order_count--;
        memmove(&member->orders[0], &member->orders[1], member->order_count * sizeof(member->orders[0]));
}

bool manager_members_takes_order(const struct manager_member *member)
{
        return member->join != NULL && member->order_count < MANAGER_ORDERS_MAX;
}

uint64_t manager_members_order(struct manager_member *member, Rendezvous__Order order)
{
        struct manager_order next;

        order.id = ++member->manager->last_order;
        next.bytes = manager_members_takes_order(member) ? pb_pack(&order, &next.size) : NULL;
        if (next.bytes == NULL)
                return 0;
        member->orders[member->order_count++] = next;
        send_next(member);
        return order.id;
}

static void forget_orders(struct manager_member *member)
{
        for (size_t i = 0; i < member->order_count; i++)
                free(member->orders[i].bytes);
        member->order_count = 0;
}

static uint64_t order_kind(struct manager_member *member, Rendezvous__Order__Kind kind)
{
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;

        order.kind = kind;
        return manager_members_order(member, order);
}

void manager_members_order_all(struct manager *manager, Rendezvous__Order__Kind kind, int exit_code)
{
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;

        order.kind = kind;
        order.exit_code = exit_code;
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                (void) manager_members_order(&manager->members[i], order);
}

void manager_members_stop(void *userdata)
{
        struct manager *manager = userdata;

        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                struct manager_member *member = &manager->members[i];

                member->subtask_order = 0;
                member->stop_order =
                        member->join == NULL ? 0 : order_kind(member, RENDEZVOUS__ORDER__KIND__stop);
                if (member->stop_order == 0)
                        engine_observe(&manager->engine,
                                       (struct world_fact){ .kind = WORLD_HALTED, .index = i });
        }
}

void manager_members_free(struct manager *manager)
{
        for (size_t i = 0; manager->members != NULL && i < manager->plan->n_groups; i++)
                forget_orders(&manager->members[i]);
        free(manager->members);
}

static size_t index_of(const struct manager_member *member)
{
        return (size_t) (member - member->manager->members);
}

static struct manager_member *find_member(struct manager *manager, const char *name)
{
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                if (strcmp(manager->plan->groups[i]->name, name) == 0)
                        return &manager->members[i];
        return NULL;
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        (void) call;
        send_next(userdata);
}

static void on_left(void *userdata, struct grpc_call *call)
{
        struct manager_member *member = userdata;
        struct manager *manager = member->manager;
        bool leaving = manager->world.places[index_of(member)].leaving;

        (void) call;
        member->join = NULL;
        member->subtask_order = member->start_order = member->stop_order = 0;
        forget_orders(member);
        engine_observe(&manager->engine, (struct world_fact){ .kind = WORLD_LOST,
                                                              .index = index_of(member),
                                                              .code = leaving ? WORLD_LEFT : WORLD_GONE });
        engine_judge(&manager->engine);
}

/* Of each connection another one, and nothing to keep. */
static void nonce_of(const struct manager *manager, const struct grpc_call *call, char ret[SHA256_HEX_BYTES])
{
        uint64_t number = grpc_call_connection(call);
        struct sha256_hmac hmac;

        sha256_hmac_init(&hmac, manager->nonces, strlen(manager->nonces));
        sha256_update(&hmac.inner, &number, sizeof(number));
        sha256_hmac_final_hex(&hmac, ret);
}

static void on_greet(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        Rendezvous__Greeting greeting = RENDEZVOUS__GREETING__INIT;
        CLEANUP(free_p) uint8_t *answer = NULL;
        char nonce[SHA256_HEX_BYTES];
        size_t size;

        (void) bytes;
        (void) size_bytes; /* a version that is not ours is refused with the call that follows */
        nonce_of(userdata, call, nonce);
        greeting.version = MESSAGE_VERSION;
        greeting.nonce = nonce;
        answer = pb_pack(&greeting, &size);
        if (answer == NULL)
                grpc_call_finish(call, GRPC_INTERNAL, "no memory");
        else
                grpc_call_reply(call, answer, size);
}

static bool proves(const struct grpc_call *call, const Rendezvous__Proof *proof, const char *token,
                   const char *role)
{
        char wanted[SHA256_HEX_BYTES];

        proof_make(token, role, proof->nonce, proof->own, grpc_call_binding(call), wanted);
        return token[0] != '\0' && proof_matches(proof->text, wanted);
}

/* Return: NULL, or why the caller does not act as @role, and the status in *status. */
static const char *refuse_proof(const struct manager *manager, const struct grpc_call *call,
                                const Rendezvous__Proof *proof, const char *role, enum grpc_status *status)
{
        bool looks = strcmp(role, PROOF_STATUS) == 0;
        char nonce[SHA256_HEX_BYTES];

        *status = GRPC_FAILED_PRECONDITION;
        if (proof == NULL || proof->version != MESSAGE_VERSION)
                return "this manager speaks another version; install the same remuda-launch everywhere";
        *status = GRPC_UNAUTHENTICATED;
        if (!looks && !grpc_call_named(call))
                return "who shows no certificate may ask how the job is, and nothing else";
        nonce_of(manager, call, nonce);
        if (!proof_matches(proof->nonce, nonce)) {
                *status = GRPC_UNAVAILABLE;
                return "this connection was not greeted";
        }
        if (!proves(call, proof, manager->token, role) &&
            !(looks && proves(call, proof, manager->plan->status_token, role)))
                return "the token is wrong; give the job's own with --token-file";
        return NULL;
}

/* Return: NULL, or why the group may not join, and the status in *status. */
static const char *refuse_join(struct manager *manager, const struct grpc_call *call,
                               const Rendezvous__Join *join, struct manager_member **ret,
                               enum grpc_status *status)
{
        const char *why = refuse_proof(manager, call, join->proof, PROOF_GROUP, status);

        if (why != NULL)
                return why;
        *status = GRPC_NOT_FOUND;
        *ret = find_member(manager, join->group);
        if (*ret == NULL)
                return "the job has no group of this name";
        *status = GRPC_ALREADY_EXISTS;
        if ((*ret)->join != NULL)
                return "a group of this name has joined already";
        *status = GRPC_INVALID_ARGUMENT;
        if (strcmp(join->runtime, (*ret)->plan->runtime) != 0)
                return "the job plans another runtime for this group";
        if (join->chips < (*ret)->plan->chips)
                return "the job plans more chips for this group than it has";
        return NULL;
}

/* The group, too, wants to know whose orders it is to follow. */
static void welcome(struct manager_member *member, const Rendezvous__Proof *proof)
{
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        char text[SHA256_HEX_BYTES];

        proof_make(member->manager->token, PROOF_MANAGER, proof->nonce, proof->own,
                   grpc_call_binding(member->join), text);
        order.kind = RENDEZVOUS__ORDER__KIND__welcome;
        order.proof = text;
        (void) manager_members_order(member, order);
}

static void on_join(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        enum grpc_status status = GRPC_INVALID_ARGUMENT;
        struct manager_member *member = NULL;
        struct pb_arena arena;
        struct err err = { 0 };
        const Rendezvous__Join *join =
                message_read(&arena, &rendezvous__join__descriptor, bytes, size_bytes, &err);
        const char *why = join == NULL ? err.msg : refuse_join(manager, call, join, &member, &status);

        if (why != NULL) {
                if (strcmp(manager->last_refusal, why) != 0)
                        log_say(manager->options->log, LOG_WARNING, "manager", "a group was refused: %s",
                                why);
                (void) text_copy(manager->last_refusal, sizeof(manager->last_refusal), why);
                grpc_call_finish(call, status, why);
                pb_arena_free(&arena);
                return;
        }
        member->join = call;
        member->connection = grpc_call_connection(call);
        (void) text_copy(member->program_sha256, sizeof(member->program_sha256), join->program_sha256);
        if (join->address[0] != '\0')
                (void) text_copy(member->plan->address, SUBTASK_ADDRESS_BYTES, join->address);
        else
                grpc_call_peer(call, member->plan->address, SUBTASK_ADDRESS_BYTES);
        member->plan->port = join->port == 0 ? 29500 : join->port;
        grpc_call_keep(call, on_idle, on_left, member);
        welcome(member, join->proof);
        manager_state_event(manager, "Joined", "group %s has joined with %u chips (%s) from %s", join->group,
                            join->chips, join->runtime, member->plan->address);
        pb_arena_free(&arena);
        member->was_there = true;
        engine_observe(&manager->engine,
                       (struct world_fact){ .kind = WORLD_HERE, .index = index_of(member) });
        engine_judge(&manager->engine);
}

static void finish_start(struct manager_member *member, int exit_code, const char *message)
{
        Rendezvous__End what = RENDEZVOUS__END__INIT;
        struct grpc_call *call = TAKE(member->start);
        uint8_t *bytes;
        size_t size;

        if (call == NULL)
                return;
        what.exit_code = exit_code;
        what.message = (char *) message;
        bytes = pb_pack(&what, &size);
        if (bytes == NULL)
                grpc_call_finish(call, GRPC_INTERNAL, "no memory");
        else
                grpc_call_reply(call, bytes, size);
        free(bytes);
}

static void take_answer(struct manager *manager, struct manager_member *member,
                        const Rendezvous__Answer *answer)
{
        const size_t index = index_of(member);

        if (answer->id == 0)
                return;
        if (answer->id == member->start_order) {
                member->start_order = 0;
                finish_start(member, answer->exit_code, answer->message);
        } else if (answer->id == member->stop_order) {
                member->stop_order = 0;
                engine_observe(&manager->engine, (struct world_fact){ .kind = WORLD_HALTED, .index = index });
        } else if (answer->id == member->subtask_order) {
                member->subtask_order = 0;
                if (answer->exit_code == 0)
                        engine_observe(&manager->engine,
                                       (struct world_fact){ .kind = WORLD_READY, .index = index });
                else
                        engine_fail(&manager->engine, EXIT_FAILED, "SubtaskRefused",
                                    "group %s refused its subtask: %s", member->plan->name, answer->message);
        }
        engine_judge(&manager->engine);
}

/* Return: the group that speaks, or NULL, and the call is finished. */
static struct manager_member *speaker(struct manager *manager, struct grpc_call *call, const char *group)
{
        struct manager_member *member = find_member(manager, group);

        if (member != NULL && member->join != NULL && member->connection == grpc_call_connection(call))
                return member;
        grpc_call_finish(call, GRPC_UNAUTHENTICATED, "the group has not joined over this connection");
        return NULL;
}

static void on_answer(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        struct manager_member *member = NULL;
        struct pb_arena arena;
        struct err err = { 0 };
        const Rendezvous__Answer *answer =
                message_read(&arena, &rendezvous__answer__descriptor, bytes, size_bytes, &err);

        if (answer == NULL)
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, err.msg);
        else
                member = speaker(manager, call, answer->group);
        if (member != NULL) {
                grpc_call_reply(call, (const uint8_t *) "", 0);
                take_answer(manager, member, answer);
        }
        pb_arena_free(&arena);
}

static void take_rank(struct manager *manager, const struct manager_member *member,
                      const Rendezvous__RankSeen *said)
{
        const struct world *world = &manager->world;

        if (said->rank < world->rank_count && world->ranks[said->rank].place == index_of(member))
                engine_take(&manager->engine, said);
}

static void on_seen(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        struct manager_member *member = NULL;
        struct pb_arena arena;
        struct err err = { 0 };
        const Rendezvous__Seen *seen =
                message_read(&arena, &rendezvous__seen__descriptor, bytes, size_bytes, &err);

        if (seen == NULL)
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, err.msg);
        else
                member = speaker(manager, call, seen->group);
        if (member != NULL) {
                grpc_call_reply(call, (const uint8_t *) "", 0);
                for (size_t i = 0; seen->world == manager->plan->world && i < seen->n_ranks; i++)
                        take_rank(manager, member, seen->ranks[i]);
                if (seen->leaving)
                        engine_observe(&manager->engine, (struct world_fact){ .kind = WORLD_LEAVING,
                                                                              .index = index_of(member) });
                engine_judge(&manager->engine);
        }
        pb_arena_free(&arena);
}

static void on_status(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        struct pb_arena arena;
        struct err err = { 0 };
        const Rendezvous__Ask *ask =
                message_read(&arena, &rendezvous__ask__descriptor, bytes, size_bytes, &err);
        Rendezvous__State state = RENDEZVOUS__STATE__INIT;
        enum grpc_status status = GRPC_INVALID_ARGUMENT;
        const char *why =
                ask == NULL ? err.msg : refuse_proof(manager, call, ask->proof, PROOF_STATUS, &status);
        CLEANUP(free_p) char *text = NULL;
        CLEANUP(free_p) uint8_t *answer = NULL;
        size_t size;

        if (why != NULL) {
                grpc_call_finish(call, status, why);
        } else {
                text = manager_state_text(manager, MESSAGE_MAX_BYTES / 2);
                state.json = text;
                answer = text == NULL ? NULL : pb_pack(&state, &size);
                if (answer == NULL)
                        grpc_call_finish(call, GRPC_INTERNAL, "no memory");
                else
                        grpc_call_reply(call, answer, size);
        }
        pb_arena_free(&arena);
}

static void on_agent_gone(void *userdata, struct grpc_call *call)
{
        struct manager_member *member = userdata;

        (void) call;
        member->start = NULL;
        member->start_order = 0;
        if (member->stop_order == 0)
                (void) order_kind(member, RENDEZVOUS__ORDER__KIND__stop);
}

static void on_start(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        struct pb_arena arena;
        struct err err = { 0 };
        const Rendezvous__Start *start =
                message_read(&arena, &rendezvous__start__descriptor, bytes, size_bytes, &err);
        struct manager_member *member = start == NULL ? NULL : find_member(manager, start->host);
        enum grpc_status status = GRPC_INVALID_ARGUMENT;
        const char *why =
                start == NULL ? err.msg : refuse_proof(manager, call, start->proof, PROOF_START, &status);

        if (why != NULL) {
                grpc_call_finish(call, status, why);
        } else if (manager->world.phase != WORLD_RUNNING || member == NULL || member->join == NULL ||
                   member->start != NULL) {
                grpc_call_finish(call, GRPC_NOT_FOUND, "no such group, or it has a daemon already");
        } else {
                order.kind = RENDEZVOUS__ORDER__KIND__start;
                order.argv = start->argv;
                order.n_argv = start->n_argv;
                member->start = call;
                grpc_call_keep(call, NULL, on_agent_gone, member);
                member->start_order = manager_members_order(member, order);
                if (member->start_order == 0)
                        finish_start(member, EXIT_FAILED, "the group takes no more orders");
        }
        pb_arena_free(&arena);
}

const struct grpc_method manager_members_methods[] = {
        { MESSAGE_GREET, on_greet },
        { MESSAGE_JOIN, on_join },
        { MESSAGE_ANSWER, on_answer },
        { MESSAGE_START, on_start },
        { MESSAGE_SEEN, on_seen },
        { MESSAGE_STATUS, on_status },
        { NULL, NULL },
};
