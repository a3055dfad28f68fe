/* One call to the manager that stays open as long as the daemon runs. */
#include "job/launcher/remote_start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "io/grpc/grpc_client.h"
#include "job/launcher/trust/proof.h"
#include "job/spec/job.h"

struct start {
        struct rendezvous_loop loop;
        Rendezvous__Start message;
        struct proof proof;
        const struct log *log;
        int exit_code;
        bool answered;
};

static void on_signal(void *userdata, int signal_number)
{
        struct start *start = userdata;

        if (signal_number != SIGCHLD) /* leaving closes the call, and that stops the daemon */
                (void) sd_event_exit(start->loop.event, 128 + signal_number);
}

static void on_message(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct start *start = userdata;
        struct pb_arena arena;
        const Rendezvous__End *end =
                message_read(&arena, &rendezvous__end__descriptor, message, size_bytes, NULL);

        if (end != NULL) {
                start->answered = true;
                start->exit_code = end->exit_code;
                if (end->message[0] != '\0')
                        log_say(start->log, LOG_INFO, "start", "%s", end->message);
        }
        pb_arena_free(&arena);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct start *start = userdata;

        if (status != GRPC_OK || !start->answered) {
                log_say(start->log, LOG_ERR, "start", "the manager refused: %s",
                        sentence == NULL ? "no reason" : sentence);
                start->exit_code = EXIT_FAILED;
        }
        (void) sd_event_exit(start->loop.event, start->exit_code);
}

static void send_start(void *userdata)
{
        const struct grpc_client_handlers handlers = { .on_message = on_message,
                                                       .on_done = on_done,
                                                       .userdata = userdata };
        struct start *start = userdata;
        Rendezvous__Proof proof = proof_message(&start->proof);

        start->message.proof = &proof;
        if (message_call(start->proof.client, MESSAGE_START, &start->message, 0, &handlers, NULL) < 0)
                on_done(start, GRPC_INTERNAL, "no memory");
}

static int call(struct start *start, const struct rendezvous_options *options, const char *token)
{
        static const struct proof_asker asker = { PROOF_START, 0, send_start, on_done };
        struct tls *tls = NULL;
        struct grpc_client_options client_options = { .address = options->address };
        struct grpc_client *client = NULL;
        struct err err = { 0 };
        int r = keys_open(&options->tls, options->address, false, &tls, &err);

        client_options.wrap = tls == NULL ? NULL : tls_wrap;
        client_options.wrap_userdata = tls;
        if (r == 0)
                r = grpc_client_new(start->loop.event, &client_options, &client, &err);
        if (r == 0)
                r = proof_greet(&start->proof, &asker, client, token, start);
        if (r < 0)
                log_end(options->log, err.msg);
        else
                r = sd_event_loop(start->loop.event);
        grpc_client_free(client);
        tls_free(tls);
        return r < 0 ? EXIT_FAILED : r;
}

int remote_start(const struct rendezvous_options *options, char *const *words, size_t count)
{
        struct start start = { .log = options->log,
                               .loop = { .signal_fd = -1, .on_signal = on_signal, .userdata = &start },
                               .message = RENDEZVOUS__START__INIT };
        char token[MESSAGE_TOKEN_BYTES];
        struct err err = { 0 };
        int exit_code = EXIT_USAGE;

        if (count < 2 || strlen(words[0]) >= JOB_NAME_BYTES)
                (void) err_set(&err, -EINVAL,
                               "--start-on: a host and a command are needed, as mpirun gives them");
        else if (rendezvous_token(options->token_file, token, &err) == 0 &&
                 rendezvous_loop_open(&start.loop, &err) == 0) {
                start.message.host = words[0];
                start.message.argv = (char **) &words[1];
                start.message.n_argv = count - 1;
                exit_code = call(&start, options, token);
        }
        if (err.code < 0)
                log_end(options->log, err.msg);
        rendezvous_loop_close(&start.loop);
        return exit_code;
}
