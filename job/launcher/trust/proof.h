/* Proof: that one knows the token of a job, without saying it, on one connection.
 *
 *      Greet                                     -> a nonce of the manager, for this connection
 *      Join, Start, Status with a proof          -> HMAC-SHA256(token, role, both nonces, the channel)
 *      the first order that answers Join         -> the manager's proof, of the same nonces
 *
 * The channel is the SHA-256 of the server's certificate (none without TLS): who stands between the two with
 * a certificate of his own cannot pass a proof on, and what was sniffed is of no use on another connection.
 * ADR 0050. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "io/grpc/grpc_client.h"
#include "io/transport.h"
#include "job/launcher/message.h"

/* Who proves it: no proof of one is good for another. */
#define PROOF_GROUP   "group"
#define PROOF_START   "start"
#define PROOF_STATUS  "status"
#define PROOF_MANAGER "manager"

/* proof_make() - @nonce, @own: the manager's and the other side's, hexadecimal
 * @binding: of the channel; all 0 = none. Pure. */
void proof_make(const char *token, const char *role, const char *nonce, const char *own,
                const uint8_t binding[TRANSPORT_BINDING_BYTES], char ret[SHA256_HEX_BYTES]);

bool proof_matches(const char *a, const char *b); /* in constant time */
bool proof_nonce(char ret[SHA256_HEX_BYTES]);     /* random; false: the kernel has none to give */

/* Who asks the manager for something. Constant. */
struct proof_asker {
        const char *role;
        uint64_t timeout_usec;         /* of the greeting; 0 = none */
        void (*ready)(void *userdata); /* the proof is made: call now, on the same client */
        void (*failed)(void *userdata, enum grpc_status status, const char *sentence);
};

/* What goes before its call. Owned by the caller; lives as long as the client. */
struct proof {
        const struct proof_asker *asker;
        struct grpc_client *client;
        const char *token;
        void *userdata;
        bool greeted;
        char nonce[SHA256_HEX_BYTES], own[SHA256_HEX_BYTES], text[SHA256_HEX_BYTES];
};

/* proof_greet() - then ready() or failed(), from the loop; neither if the client is freed before. All is
 * borrowed. Return: 0; -ENOMEM; -EIO (no random bytes). */
int proof_greet(struct proof *proof, const struct proof_asker *asker, struct grpc_client *client,
                const char *token, void *userdata);

/* proof_message() - what goes into the call. It borrows from @proof. */
Rendezvous__Proof proof_message(struct proof *proof);

/* proof_of_manager() - does who answered that call know the token, too? */
bool proof_of_manager(const struct proof *proof, const char *text);
