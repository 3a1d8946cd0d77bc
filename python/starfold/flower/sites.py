"""Which of Flower's nodes is which client of the study."""


class Mistake(Exception):
    """Something in the study or its set-up; the text is one sentence for the analyst."""


def normal(text):
    """A public key, in OpenSSH's form or as PEM, as bytes that are equal for equal keys; None if it is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form
    load = form.load_pem_public_key if text.lstrip().startswith("-----") else form.load_ssh_public_key
    try:
        key = load(text.strip().encode())
        return key.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        return None


class Client:
    """A client of the study: its name, and its key unless the study leaves it out."""

    def __init__(self, name, key=None):
        self.name = name
        self.key = key


def read_clients(entries):
    """The clients of the study. No two have the same key."""
    clients = []
    for entry in entries:
        name, text = entry["name"], entry.get("public_key") or ""
        key = None
        if text:
            key = normal(text)
            if key is None:
                raise Mistake(f"client {name}: its public_key is not a public key")
        if key and any(other.key == key for other in clients):
            raise Mistake(f"client {name} has the public key of another client")
        clients.append(Client(name, key))
    return clients


def find(client, nodes):
    """The id of the client's node among Flower's, None if it is not online. Names are not unique on a SuperLink; keys are."""
    if client.key:
        found = [node["id"] for node in nodes if normal(node["key"]) == client.key]
    else:
        found = [node["id"] for node in nodes if node["name"] == client.name]
    if len(found) > 1:
        raise Mistake(f"{len(found)} SuperNodes are called {client.name}: give the client's public_key in the study")
    return found[0] if found else None
