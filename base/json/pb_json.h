/* Protobuf as JSON: any message both ways, by its own descriptor, so that the .proto is the one table of a
 * message's fields, types and defaults.
 *
 * Of text, truth, enumerations, real and unsigned numbers, and messages of these.
 *
 * As in proto3's canonical JSON with the names of the .proto; but numbers of 64 bits are numbers, and a
 * repeated message of the two strings `key` and `value` is an object. Pure but for the heap. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/pb.h"

/* pb_json_encode() - the fields that the message has. A new reference; NULL = out of memory. */
json_t *pb_json_encode(const ProtobufCMessage *message);

/* pb_json_decode() - a message in the arena: what the object does not have, or has as null, has its default,
 * also where it is required. Names that the message does not know are passed over.
 * Return: NULL and *err: -EINVAL with the field and what it needs, -ENOMEM. */
void *pb_json_decode(const json_t *object, const ProtobufCMessageDescriptor *descriptor,
                     struct pb_arena *arena, struct err *err);
