import './style.css';
document.title = 'sonde';
