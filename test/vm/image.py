#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads container/Dockerfile and container/daemonset.yaml for the tests of the image, so that these run what users run.

  image.py suite          the Debian release of the base image
  image.py steps          the commands of RUN, one a line
  image.py changes        an option for `docker import` on each line: what the recipe says of the image, besides files
  image.py options        for each option of `docker run`: the right that it is, or "-" for what is no right, a tab, and
                          the option
  image.py pod            the DaemonSet's pod, as the kubelet takes it from a file
  image.py guide          nothing, if the user guide's `docker run` has the same rights
  image.py oci NAME FILES IMAGE [WORD...]
                          makes an OCI image from a tar of its files, for containerd; without words for what it starts,
                          with what the recipe says

Whatever stands in these files and is not known here is an error: so no right is overlooked.
"""
import hashlib
import io
import json
import os
import re
import sys
import tarfile

import yaml

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../container')


def instructions():
    """(name, arguments) of each instruction of the Dockerfile."""
    with open(os.path.join(FOLDER, 'Dockerfile'), encoding='utf-8') as file:
        text = re.sub(r'^\s*#.*\n', '', file.read(), flags=re.M)
    for line in text.replace('\\\n', ' ').splitlines():
        name, _, arguments = line.partition(' ')
        yield name, ' '.join(arguments.split())


def recipe():
    """The recipe as (release, steps, changes)."""
    release, files, steps, changes = '', [], [], []
    for name, arguments in instructions():
        if name == 'ARG' and arguments.startswith('SUITE='):
            release = arguments.removeprefix('SUITE=')
        elif name == 'FROM' and arguments == 'debian:${SUITE}-slim':
            pass
        elif name == 'COPY':
            files.append(arguments)
        elif name == 'RUN':
            steps.append(arguments)
        elif name in ('ENV', 'ENTRYPOINT'):
            changes.append(f'{name} {arguments}')
        else:
            sys.exit(f'the recipe has {name}, which this test does not know')
    if files != ['flamed_*.deb /packages/']:
        sys.exit(f'the recipe copies something else than the package: {files}')
    return release, steps, changes


def daemon_set():
    with open(os.path.join(FOLDER, 'daemonset.yaml'), encoding='utf-8') as file:
        found = [document for document in yaml.safe_load_all(file) if document['kind'] == 'DaemonSet']
    return found[0]


def take(where, values, expected):
    """Checks keys that have one known value, which an engine without a cluster has no option for or does not need."""
    for key, value in expected.items():
        if values.pop(key, None) != value:
            sys.exit(f'{where}.{key} is not {value!r}')


def done(where, values):
    if values:
        sys.exit(f'{where} has what this test does not know: {", ".join(values)}')


def options_of_mounts(container, volumes):
    folders = {}
    for volume in volumes:
        path = volume['hostPath'].pop('path')
        take(volume['name'], volume['hostPath'],
             {'type': 'Directory' if volume['name'] == 'names-of-containers' else 'DirectoryOrCreate'})
        folders[volume.pop('name')] = path
        done('volumes', {key: value for key, value in volume.items() if value})
    for mount in container.pop('volumeMounts'):
        path = mount.pop('mountPath')
        rights = ':ro' if mount.pop('readOnly', False) else ''
        yield path, f'--volume={folders.pop(mount.pop("name"))}:{path}{rights}'
        done('volumeMounts', mount)
    done('volumes', folders)


def options():
    pod = daemon_set()['spec']['template']['spec']
    container, = pod.pop('containers')
    take('pod', pod, {'nodeSelector': {'kubernetes.io/os': 'linux'}, 'tolerations': [{'operator': 'Exists'}],
                      'automountServiceAccountToken': False, 'enableServiceLinks': False, 'hostPID': True,
                      'hostNetwork': True})
    yield 'hostPID', '--pid=host'
    yield 'hostNetwork', '--network=host'
    yield '-', f'--stop-timeout={pod.pop("terminationGracePeriodSeconds")}'

    context = container.pop('securityContext')
    take('securityContext', context, {
        'runAsUser': 0, 'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True,
        'seccompProfile': {'type': 'RuntimeDefault'}, 'appArmorProfile': {'type': 'Unconfined'}})
    yield '-', '--user=0'
    yield '-', '--security-opt=no-new-privileges'
    yield '-', '--read-only'
    yield 'appArmorProfile', '--security-opt=apparmor=unconfined'
    capabilities = context.pop('capabilities')
    take('capabilities', capabilities, {'drop': ['ALL']})
    yield '-', '--cap-drop=ALL'
    for name in capabilities.pop('add'):
        yield name, f'--cap-add={name}'
    done('capabilities', capabilities)
    done('securityContext', context)

    limits = container.pop('resources')['limits']
    yield '-', f'--cpus={limits.pop("cpu")}'
    yield '-', f'--memory={limits.pop("memory").replace("Mi", "m")}'
    done('limits', limits)
    yield from options_of_mounts(container, pod.pop('volumes'))
    take('container', container, {'name': 'flamed', 'image': 'flamed', 'imagePullPolicy': 'IfNotPresent',
                                  'ports': [{'name': 'http', 'containerPort': 9090}]})
    # The kubelet asks; `docker run` has nothing like it.
    for probe in ('livenessProbe', 'readinessProbe'):
        container.pop(probe)
    done('container', container)
    done('pod', pod)


def static_pod():
    wanted = daemon_set()
    pod = {'apiVersion': 'v1', 'kind': 'Pod'}
    pod['metadata'] = dict(wanted['spec']['template']['metadata'], name=wanted['metadata']['name'],
                           namespace=wanted['metadata']['namespace'])
    pod['spec'] = wanted['spec']['template']['spec']
    return yaml.safe_dump(pod, sort_keys=False)


def check_guide():
    """Docker's containers have their names in another folder than the kubelet's."""
    with open(os.path.join(FOLDER, '../docs/user-guide.md'), encoding='utf-8') as file:
        found = re.search(r'^ +docker run (.*(?:\\\n.*)*) flamed$', file.read(), flags=re.M)
    said = set(found[1].replace('\\\n', ' ').split()) if found else set()
    wanted = {option for right, option in options() if right != '/var/log/containers'} | {
        '--detach', '--name=flamed', '--restart=on-failure',
        '--volume=/var/lib/docker/containers:/var/lib/docker/containers:ro'}
    if said != wanted:
        sys.exit(f"the user guide's `docker run` differs from the manifest: {' '.join(sorted(said ^ wanted))}")


def oci_config(words):
    if words:
        return {'Entrypoint': words}
    _, _, changes = recipe()
    config = {}
    for change in changes:
        name, _, value = change.partition(' ')
        config |= {'Env': value.split()} if name == 'ENV' else {'Entrypoint': json.loads(value)}
    return config


def write_oci_image(name, files, image, *words):
    """One layer, by the OCI's image-layout.md, image-index.md, manifest.md and config.md."""
    with tarfile.open(image, 'w') as tar:
        def add(path, content):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))

        def add_blob(kind, content):
            digest = hashlib.sha256(content).hexdigest()
            add('blobs/sha256/' + digest, content)
            return {'mediaType': f'application/vnd.oci.image.{kind}', 'digest': 'sha256:' + digest, 'size': len(content)}

        with open(files, 'rb') as file:
            layer = add_blob('layer.v1.tar', file.read())
        config = add_blob('config.v1+json', json.dumps({
            'architecture': 'amd64', 'os': 'linux', 'config': oci_config(list(words)),
            'rootfs': {'type': 'layers', 'diff_ids': [layer['digest']]}}).encode())
        manifest = add_blob('manifest.v1+json', json.dumps({
            'schemaVersion': 2, 'mediaType': 'application/vnd.oci.image.manifest.v1+json', 'config': config,
            'layers': [layer]}).encode())
        manifest['annotations'] = {'io.containerd.image.name': f'docker.io/library/{name}:latest'}
        add('index.json', json.dumps({'schemaVersion': 2, 'manifests': [manifest]}).encode())
        add('oci-layout', b'{"imageLayoutVersion": "1.0.0"}')


def main():
    release, steps, changes = recipe()
    wanted = sys.argv[1]
    if wanted == 'suite':
        print(release)
    elif wanted == 'steps':
        print('\n'.join(steps))
    elif wanted == 'changes':
        print('\n'.join('--change=' + change for change in changes))
    elif wanted == 'options':
        print('\n'.join(f'{right}\t{option}' for right, option in options()))
    elif wanted == 'pod':
        print(static_pod(), end='')
    elif wanted == 'guide':
        check_guide()
    elif wanted == 'oci':
        write_oci_image(*sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
