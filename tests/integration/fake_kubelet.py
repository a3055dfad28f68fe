"""A scripted kubelet over grpcio: registration server, device plugin client, pod-resources server; and a protobuf codec
of its own, so that ours is checked by something that is not ours. Needs python3-grpcio."""
import contextlib
import json, os, queue, subprocess, sys, tempfile, threading, time
import grpc
from concurrent import futures


# --- protobuf, by hand: a message is a list of (field, value); value bytes or int ---------------------------------
def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append((n & 127) | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def pack(*fields):
    out = bytearray()  # which grows in place: some messages are megabytes
    for number, value in fields:
        if isinstance(value, (bool, int)):
            out += varint(number << 3) + varint(int(value))
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def unpack(data):
    fields, i = [], 0
    def number():
        nonlocal i
        n = shift = 0
        while True:
            b = data[i]; i += 1
            n |= (b & 127) << shift; shift += 7
            if b < 128:
                return n
    while i < len(data):
        key = number()
        if key & 7 == 0:
            fields.append((key >> 3, number()))
        elif key & 7 == 2:
            size = number()
            assert i + size <= len(data), 'truncated'
            fields.append((key >> 3, data[i:i + size])); i += size
        else:
            raise ValueError('wire type %d' % (key & 7))
    return fields


def get(fields, number, default=b''):
    for n, v in fields:
        if n == number:
            default = v
    return default


def every(fields, number):
    return [v for n, v in fields if n == number]


def text(fields, number):
    return get(fields, number).decode()


def device_list(message):
    """ListAndWatchResponse -> [(id, health, [numa])]"""
    out = []
    for device in every(unpack(message), 1):
        f = unpack(device)
        topology = get(f, 3, None)
        numa = [] if topology is None else [get(unpack(n), 1, 0) for n in every(unpack(topology), 1)]
        out.append((text(f, 1), text(f, 2), numa))
    return out


def allocate_answer(message):
    """AllocateResponse -> [dict(envs, mounts, devices, cdi)]"""
    out = []
    for container in every(unpack(message), 1):
        f = unpack(container)
        out.append({
            'envs': {text(unpack(e), 1): text(unpack(e), 2) for e in every(f, 1)},
            'mounts': [(text(unpack(m), 1), text(unpack(m), 2), bool(get(unpack(m), 3, 0))) for m in every(f, 2)],
            'devices': [(text(unpack(d), 1), text(unpack(d), 2), text(unpack(d), 3)) for d in every(f, 3)],
            'cdi': [text(unpack(c), 1) for c in every(f, 5)]})
    return out


raw = lambda b: b
# grpcio answers a peer's PINGs and opens one connection a channel with this; an aborted one retries quickly
OPTIONS = [('grpc.use_local_subchannel_pool', 1), ('grpc.initial_reconnect_backoff_ms', 20)]


class Endpoint:
    """What the kubelet knows of one registered plugin."""
    def __init__(self, directory, endpoint, resource, options, path=None):
        self.endpoint, self.resource, self.options = endpoint, resource, options
        self.path = path or os.path.join(directory, endpoint)
        self.channel = grpc.insecure_channel('unix:' + self.path, options=OPTIONS)
        self.lists, self.ended, self.stream = [], threading.Event(), None
        self.times, self.changed = [], threading.Condition()

    def call(self, method, request=b'', timeout=30, service='v1beta1.DevicePlugin'):
        return self.channel.unary_unary('/%s/%s' % (service, method), raw, raw)(request, timeout=timeout)

    def watch(self):
        self.stream = self.channel.unary_stream('/v1beta1.DevicePlugin/ListAndWatch', raw, raw)(b'')
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self.stream:
                with self.changed:
                    self.lists.append(device_list(message))
                    self.times.append(time.monotonic())
                    self.changed.notify_all()
        except grpc.RpcError as error:
            self.error = error.code().name
        self.ended.set()
        with self.changed:
            self.changed.notify_all()

    def wait_list(self, good, timeout=30):
        """the newest list for which good(list) holds, or None"""
        end = time.monotonic() + timeout
        with self.changed:
            while not (self.lists and good(self.lists[-1])):
                left = end - time.monotonic()
                if left <= 0:
                    return None
                self.changed.wait(left)
            return self.lists[-1]

    def allocate(self, ids, timeout=30):
        request = pack((1, pack(*[(1, i) for i in ids])))
        return allocate_answer(self.call('Allocate', request, timeout))

    def preferred(self, available, must, size):
        request = pack((1, pack(*[(1, i) for i in available], *[(2, i) for i in must], (3, size))))
        answer = self.call('GetPreferredAllocation', request)
        return [i.decode() for c in every(unpack(answer), 1) for i in every(unpack(c), 1)]

    def close(self):
        if self.stream:
            self.stream.cancel()
        self.channel.close()


class Kubelet:
    """on_register(Endpoint) may raise ValueError to refuse, or sleep to be late."""
    def __init__(self, directory, wipe=True, watch=True, on_register=None):
        self.directory, self.watch_lists, self.on_register = directory, watch, on_register
        self.endpoints, self.registered, self.lock = [], queue.Queue(), threading.Lock()
        self.socket = os.path.join(directory, 'kubelet.sock')
        if wipe:
            for name in os.listdir(directory):
                path = os.path.join(directory, name)
                if not os.path.isdir(path) and 'checkpoint' not in name:
                    with contextlib.suppress(FileNotFoundError):  # a plugin may take its own away meanwhile
                        os.unlink(path)
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=[('grpc.so_reuseport', 0)])
        handler = grpc.method_handlers_generic_handler('v1beta1.Registration', {
            'Register': grpc.unary_unary_rpc_method_handler(self._register, raw, raw)})
        self.server.add_generic_rpc_handlers((handler,))
        assert self.server.add_insecure_port('unix:' + self.socket)
        self.server.start()
        self.started = time.monotonic()

    def _register(self, request, context):
        f = unpack(request)
        options = unpack(get(f, 4))
        endpoint = Endpoint(self.directory, text(f, 2), text(f, 3),
                            {'pre_start': bool(get(options, 1, 0)), 'preferred': bool(get(options, 2, 0))})
        if text(f, 1) != 'v1beta1':
            context.abort(grpc.StatusCode.UNKNOWN, 'unsupported version')
        try:
            if self.on_register:
                self.on_register(endpoint)
        except ValueError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        # the real one dials back from inside this call
        endpoint.served = unpack(endpoint.call('GetDevicePluginOptions'))
        with self.lock:
            self.endpoints.append(endpoint)
        if self.watch_lists:
            endpoint.watch()
        self.registered.put(endpoint)
        return b''

    def wait(self, resource=None, timeout=30):
        """the next registration (of a resource), or None"""
        end = time.monotonic() + timeout
        while True:
            try:
                endpoint = self.registered.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                return None
            if resource is None or endpoint.resource == resource:
                return endpoint

    def stop(self):
        """like SIGKILL: every connection ends, the socket file stays"""
        for endpoint in self.endpoints:
            endpoint.close()
        path, keep = self.socket, self.socket + '.keep'
        if os.path.exists(path):
            os.link(path, keep)
        self.server.stop(0).wait()
        if os.path.exists(keep):
            if os.path.exists(path):
                os.unlink(keep)
            else:
                os.rename(keep, path)


def lister(path, answers, asked):
    """The kubelet's pod-resources on a socket: says answers[0], bytes or the code of a refusal, and writes down when."""
    def answer(request, context):
        asked.append(time.monotonic())
        if not isinstance(answers[0], bytes):
            context.abort(answers[0], 'rejected by rate limit')
        return answers[0]
    server = grpc.server(futures.ThreadPoolExecutor(2), options=[('grpc.max_send_message_length', -1)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('v1.PodResourcesLister', {
        'List': grpc.unary_unary_rpc_method_handler(answer, raw, raw)}),))
    server.add_insecure_port('unix:' + path)
    server.start()
    return server


def held(pod, namespace, container, *devices):
    """A pod for lister(): its answer is pack() of them."""
    return (1, pack((1, pod), (2, namespace), (3, pack((1, container), *[(2, pack((1, resource), (2, device))) for resource, device in devices]))))


class Host:
    """plugin-host under test"""
    def __init__(self, directory, *options, quiet=True, program=None):
        self.log = tempfile.TemporaryFile('w+')
        program = program or os.path.join(os.environ.get('B', 'build'), 'tests-bin', 'plugin-host')
        self.process = subprocess.Popen([program, directory, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        self.first = json.loads(self.process.stdout.readline())

    def do(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def wait(self, good, timeout=30):
        end = time.monotonic() + timeout
        while True:
            status = self.do('status')
            if good(status):
                return status
            if time.monotonic() > end:
                return None
            time.sleep(0.01)

    def rss_bytes(self):
        with open('/proc/%d/statm' % self.process.pid) as f:
            return int(f.read().split()[1]) * 4096

    def sanitized(self):
        """is it an AddressSanitizer build?"""
        with open('/proc/%d/maps' % self.process.pid) as f, open('/proc/%d/exe' % self.process.pid, 'rb') as program:
            return 'libasan' in f.read() or b'__asan_init' in program.read()

    def descriptors(self):
        return len(os.listdir('/proc/%d/fd' % self.process.pid))

    def stop(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
                self.process.wait(10)
            except Exception:
                self.process.kill()
        self.process.stdout.close()
        return self.process.wait()

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def logged(self):
        self.log.seek(0)
        return self.log.read()


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, what, detail=''):
        self.count += 1
        self.failed += not good
        print('%s %d - %s' % ('ok' if good else 'not ok', self.count, what), flush=True)
        if not good and detail != '':
            print('# ' + str(detail)[:2000].replace('\n', '\n# '), flush=True)
        return good

    def done(self):
        print('1..%d' % self.count)
        sys.exit(1 if self.failed else 0)
