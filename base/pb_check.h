/* Protobuf check: the figures, texts and lists of a message within their bounds, by the bounds that
 * its .proto gives them (tools/proto-bounds). Pure. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/err.h"

/* Of a number: what it may be; of a text: its bytes; of a list: how many. */
struct pb_check {
        const ProtobufCMessageDescriptor
                *of; /* rows of other messages are passed over; NULL ends the table */
        const char *field;
        uint64_t min, max;
};

/* pb_check() - @message alone, not the messages in it. Return: 0; @code and *err with the field. */
int pb_check(const struct pb_check *rows, const ProtobufCMessage *message, int code, struct err *err);
