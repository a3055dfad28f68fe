/* The greeting before a call, and what both sides compute from it. */
#include "job/launcher/trust/proof.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"

void proof_make(const char *token, const char *role, const char *nonce, const char *own,
                const uint8_t binding[TRANSPORT_BINDING_BYTES], char ret[SHA256_HEX_BYTES])
{
        const char *const words[] = { "remuda.rendezvous.v1", role, nonce, own };
        struct sha256_hmac hmac;

        sha256_hmac_init(&hmac, token, strlen(token));
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                sha256_update(&hmac.inner, words[i],
                              strlen(words[i]) + 1); /* with its end: no two run together */
        sha256_update(&hmac.inner, binding, TRANSPORT_BINDING_BYTES);
        sha256_hmac_final_hex(&hmac, ret);
}

bool proof_matches(const char *a, const char *b)
{
        size_t length = strlen(a);
        unsigned char difference = 0;

        if (length != strlen(b))
                return false;
        for (size_t i = 0; i < length; i++)
                difference |= (unsigned char) (a[i] ^ b[i]);
        return difference == 0;
}

bool proof_nonce(char ret[SHA256_HEX_BYTES])
{
        uint8_t bytes[SHA256_BYTES];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
                return false;
        sha256_hex(bytes, ret);
        return true;
}

static void on_message(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct proof *proof = userdata;
        struct pb_arena arena;
        const Rendezvous__Greeting *greeting =
                message_read(&arena, &rendezvous__greeting__descriptor, message, size_bytes, NULL);

        if (greeting != NULL && sha256_is_hex(greeting->nonce)) {
                (void) text_copy(proof->nonce, sizeof(proof->nonce), greeting->nonce);
                proof_make(proof->token, proof->asker->role, proof->nonce, proof->own,
                           grpc_client_binding(proof->client), proof->text);
                proof->greeted = true;
        }
        pb_arena_free(&arena);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct proof *proof = userdata;

        if (status == GRPC_OK && proof->greeted)
                proof->asker->ready(proof->userdata);
        else
                proof->asker->failed(proof->userdata, status == GRPC_OK ? GRPC_FAILED_PRECONDITION : status,
                                     status == GRPC_OK ? "the manager's greeting is none" : sentence);
}

int proof_greet(struct proof *proof, const struct proof_asker *asker, struct grpc_client *client,
                const char *token, void *userdata)
{
        const struct grpc_client_handlers handlers = { .on_message = on_message,
                                                       .on_done = on_done,
                                                       .userdata = proof };
        Rendezvous__Greet greet = RENDEZVOUS__GREET__INIT;

        greet.version = MESSAGE_VERSION;
        *proof = (struct proof){ .asker = asker, .client = client, .token = token, .userdata = userdata };
        return proof_nonce(proof->own)
                       ? message_call(client, MESSAGE_GREET, &greet, asker->timeout_usec, &handlers, NULL)
                       : -EIO;
}

Rendezvous__Proof proof_message(struct proof *proof)
{
        Rendezvous__Proof message = RENDEZVOUS__PROOF__INIT;

        message.version = MESSAGE_VERSION;
        message.nonce = proof->nonce;
        message.own = proof->own;
        message.text = proof->text;
        return message;
}

bool proof_of_manager(const struct proof *proof, const char *text)
{
        char wanted[SHA256_HEX_BYTES];

        proof_make(proof->token, PROOF_MANAGER, proof->nonce, proof->own, grpc_client_binding(proof->client),
                   wanted);
        return proof_matches(text, wanted);
}
